/* Drives the component `listen` as ESPHome does: samples of a file in pieces of
 * all sizes, a loop after each. */
#include <cassert>
#include <cstdio>

#include "esphome/components/listen/listen_component.h"

using namespace esphome;

static listen::WakeWords words;
static microphone::MicrophoneSource source;
static unsigned count;

static bool give(std::FILE *file, size_t bytes)
{
    std::vector<uint8_t> data(bytes);
    data.resize(std::fread(data.data(), 1, bytes, file));
    source.give(data);
    return !data.empty();
}

int main(int number, char **arguments)
{
    listen::StartAction<> start;
    listen::StopAction<> stop;
    listen::EnableAction<> disable, enable;
    listen::IsRunningCondition<> is_running;
    listen::IsEnabledCondition<> is_enabled;
    std::FILE *file = std::fopen(arguments[1], "rb");

    assert(number == 2 && file != nullptr);
    start.set_parent(&words);
    stop.set_parent(&words);
    is_running.set_parent(&words);
    is_enabled.set_parent(&words);
    is_enabled.set_word(1);
    disable.set_parent(&words);
    disable.set_word(1);
    disable.set_enabled(false);
    enable.set_parent(&words);
    enable.set_word(1);
    words.set_microphone_source(&source);
    words.set_stop_after_detection(false);
    words.setup();
    assert(words.get_setup_priority() == setup_priority::AFTER_CONNECTION);
    words.dump_config();

    /* what comes before the start is not heard */
    words.get_wake_word_detected_trigger()->then = [](const std::string &) {
        count++;
    };
    for (int i = 0; i < 100; i++, words.loop())
        give(file, 1024);
    assert(count == 0 && !source.running && !is_running.check());
    std::rewind(file);

    /* all words, and none lost */
    start.play();
    start.play();
    assert(source.running && is_running.check() && is_enabled.check());
    words.get_wake_word_detected_trigger()->then = [](const std::string &word) {
        std::printf("heard %s\n", word.c_str());
        count++;
    };
    for (size_t bytes = 2; give(file, bytes);
         bytes = bytes * 5 % 2040 + 2, words.loop())
        ;
    assert(count > 0);

    /* as many from the second start; one is disabled */
    const unsigned all = count;
    std::printf("second\n");
    stop.play();
    stop.play();
    assert(!source.running);
    disable.play();
    assert(!is_enabled.check());
    std::rewind(file);
    start.play();
    for (count = 0; give(file, 1024); words.loop())
        ;
    assert(count < all);
    enable.play();
    assert(is_enabled.check());
    std::rewind(file);
    for (stop.play(), start.play(), count = 0; give(file, 1024); words.loop())
        ;
    assert(count == all);

    /* it stops with the first word, or words of one row, which may start it
     * anew */
    std::printf("third\n");
    words.set_stop_after_detection(true);
    std::rewind(file);
    for (stop.play(), start.play(), count = 0; give(file, 1024); words.loop())
        ;
    assert(count > 0 && count <= LISTEN_WORDS && !source.running);
    words.get_wake_word_detected_trigger()->then =
        [&start](const std::string &) { count++, start.play(); };
    std::rewind(file);
    for (start.play(), count = 0; give(file, 1024); words.loop())
        ;
    assert(count > 1 && source.running);

    /* a loop that is late loses whole pieces, and says so */
    std::rewind(file);
    for (int i = 0; i < 5; i++)
        give(file, 1024);
    words.loop();
    return std::fclose(file);
}
