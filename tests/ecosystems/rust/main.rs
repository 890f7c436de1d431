//! A program of all crates of the test: what it prints is compared with pybuild's own
//! instances, the rest is asserted here.

use std::thread;

const fn number(i: usize) -> i8 {
    ((i * 37 + 11) % 256) as u8 as i8
}

fn ints<const N: usize>() -> [i8; N] {
    let mut made = [0; N];
    for (i, to) in made.iter_mut().enumerate() {
        *to = number(i);
    }
    made
}

fn floats<const N: usize>() -> [f32; N] {
    ints::<N>().map(|n| n as f32 / 128.0)
}

fn show<T: std::fmt::Debug>(name: &str, values: &[T]) {
    println!("{}: {:?}", name, values);
}

fn plain() -> Result<(), digits::Error> {
    let mut arena = digits::Arena::new();
    let mut model = digits::Model::new(&mut arena)?;
    let image: [i8; digits::IMAGE_LEN] = ints();
    assert_eq!(digits::IMAGE_SHAPE, [1, 8, 8, 1]);
    assert_eq!(model.run().unwrap_err(), digits::Error::InputMissing);
    model.set_image(&image)?;
    show("digits", model.run()?.scores);
    let first = *model.run_with(digits::Inputs { image: &image })?.scores;
    assert_eq!(model.run().unwrap_err(), digits::Error::InputConsumed);
    assert_eq!(digits::Error::InputConsumed.code(), -9);
    let text = digits::Error::InputConsumed.to_string();
    assert_eq!(text, "an input was used up: give it again");

    // filled in place, bound for long, bound and written elsewhere
    *model.image()? = image;
    assert_eq!(*model.run()?.scores, first);
    let mut scores = [0; digits::SCORES_LEN];
    model.bind_image(&image)?;
    model.bind_scores(&mut scores)?;
    assert_eq!(model.run()?.scores, &first);
    assert_eq!(model.run()?.scores, &first);
    // memory that is bound is only read: this is the model's own again
    model.image()?.fill(0);
    assert_ne!(model.run()?.scores, &first);
    assert_eq!(image, ints());
    model.unbind_scores()?;
    model.reset()?;
    assert_eq!(model.run().unwrap_err(), digits::Error::InputMissing);
    model.selftest()?;
    assert_ne!(scores, first); // what is lent is free once the model is not used
    Ok(())
}

/// An instance may go to another thread, and several run at the same time.
fn threads() {
    let mut arenas = [digits::Arena::new(), digits::Arena::new()];
    let mut models: Vec<_> = arenas
        .iter_mut()
        .map(|arena| digits::Model::new(arena).unwrap())
        .collect();
    thread::scope(|scope| {
        for model in models.iter_mut() {
            scope.spawn(move || {
                for _ in 0..100 {
                    model.selftest().unwrap();
                }
            });
        }
    });
}

fn image_of_two() -> Result<(), pair::Error> {
    let mut arena = pair::Arena::new();
    let models = pair::Models::new(&mut arena)?;
    let (mut a, mut b) = (models.a, models.b);
    let first = a.run_with(pair::a::Inputs { image: &ints() })?;
    b.set_image(&[0; 64])?;
    assert_ne!(first.scores, b.run()?.scores);
    show("pair", first.scores);
    Ok(())
}

fn turns() -> Result<(), turns::Error> {
    let mut arena = turns::Arena::new();
    let mut models = turns::Models::new(&mut arena)?;
    models.c().set_image(&ints())?;
    show("turn of c", models.c().run()?.scores);
    let image: [f32; turns::d::IMAGE_LEN] = floats();
    let mut d = models.d();
    show("turn of d", d.run_with(turns::d::Inputs { image: &image })?.scores);
    assert!(models.c().run().is_err(), "d has its memory now");
    models.d().selftest()
}

/// Names that Rust has taken, and an output that is the input of another model.
fn piped() -> Result<(), piped::Error> {
    let mut arena = piped::Arena::new();
    let mut models = piped::Models::new(&mut arena)?;
    models.head().set_type_(&[-1.0, 2.0, -3.0, 4.0])?;
    show("head", models.head().run()?.fn_);
    show("tail", models.tail().run()?.match_);
    Ok(())
}

fn lazy() -> Result<(), lazy::Error> {
    let mut arena = Box::new(lazy::Arena::new());
    let mut scores = lazy::Aligned([0.0; lazy::SCORES_LEN]);
    let image: lazy::Aligned<[f32; lazy::IMAGE_LEN]> = lazy::Aligned(floats());
    let mut model = lazy::Model::new(&mut arena)?;
    assert_eq!(model.run().unwrap_err(), lazy::Error::Unbound);
    model.bind_scores(&mut scores.0)?;
    model.run_with(lazy::Inputs { image: &image.0 })?;
    assert_eq!(model.run().unwrap_err(), lazy::Error::Unbound);
    model.bind_image(&image.0)?;
    model.run()?;
    show("lazy", &scores.0);
    lazy::Model::verify()
}

fn regions() -> Result<(), regions::Error> {
    let (mut arena, mut near) = (regions::Arena::new(), regions::NearRegion::new());
    let mut model = regions::Model::new(&mut arena, &mut near)?;
    show("regions", model.run_with(regions::Inputs { image: &floats() })?.scores);
    Ok(())
}

fn pushed() -> Result<(), pushed::Error> {
    let mut arena = pushed::Arena::new();
    let mut model = pushed::Model::new(&mut arena)?;
    let image: [i8; pushed::IMAGE_LEN] = ints();
    assert_eq!(model.push_image(&image[1..]).unwrap_err(), pushed::Error::Size);
    for (i, row) in image.chunks(pushed::IMAGE_ROW_LEN).enumerate() {
        assert_eq!(model.rows_left_image()?, pushed::IMAGE_ROWS - i);
        assert!(model.rows_wanted_image()? >= 1);
        assert_eq!(model.run().unwrap_err(), pushed::Error::InputMissing);
        model.push_image(row)?;
    }
    show("pushed", model.run()?.scores);
    Ok(())
}

fn state() -> Result<(), gru::Error> {
    let mut arena = gru::Arena::new();
    let mut model = gru::Model::new(&mut arena)?;
    let mut kept = [0; gru::STATE_BYTES];
    let frame: [f32; gru::FRAME_LEN] = floats();
    model.set_frame(&frame)?;
    model.run()?;
    model.save_state(&mut kept)?;
    model.set_frame(&frame)?;
    let second = *model.run()?.scores;
    show("gru", &second);
    model.reset()?;
    model.restore_state(&kept)?;
    model.set_frame(&frame)?;
    assert_eq!(*model.run()?.scores, second);
    kept[5] ^= 1;
    assert_eq!(model.restore_state(&kept).unwrap_err(), gru::Error::State);
    Ok(())
}

fn samples() -> Result<(), heard::Error> {
    let mut arena = heard::Arena::new();
    let mut model = heard::Model::new(&mut arena)?;
    let few = model.samples_wanted() - 1;
    assert!(model.push_samples(&vec![0; few])?.is_none());
    assert_eq!(model.samples_wanted(), 1);
    let sound: Vec<i16> = (0..4000).map(|i| i16::from(number(i)) * 64).collect();
    let outputs = model.push_samples(&sound)?.expect("runs");
    show("heard", outputs.scores);
    Ok(())
}

fn main() -> Result<(), crt::Error> {
    plain()?;
    threads();
    image_of_two()?;
    turns()?;
    piped()?;
    lazy()?;
    regions()?;
    pushed()?;
    state()?;
    samples()
}
