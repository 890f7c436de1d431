#!/bin/sh
# A compiler for tests, by the name that it is called by: each source is compiled by
# itself, which ccache keeps, then all are linked. Of what compiles several, or compiles
# and links at once, ccache keeps nothing.
compiler=${0##*/}

# compile SOURCE OBJECT WORD...: without the words that are of the linker
compile() {
    source=$1 object=$2 skip=
    shift 2
    for word; do
        shift
        if [ -n "$skip" ]; then
            skip=
            continue
        fi
        case $word in
        -o | -T) skip=1 ;;
        -c | -l* | -L* | -T* | -Wl,* | -nostdlib | -nostartfiles | -shared | -static | \
            -pie | -no-pie | -rdynamic | *.c | *.cpp | *.S | *.o | *.a | *.so | *.ld) ;;
        *) set -- "$@" "$word" ;;
        esac
    done
    # a tree of files is the same wherever it lies: its paths are told from its sources
    (
        case $here$source in
        /*) cd "${source%/*}" || exit ;;
        esac
        exec ccache "$compiler" "$@" -c "$source" -o "$object"
    )
}

# link WORD...: objects in place of sources, without the words that are of sources
link() {
    skip='' count=0
    for word; do
        shift
        if [ -n "$skip" ]; then
            skip=
            continue
        fi
        case $word in
        -include | -imacros | -isystem | -iquote | -I | -D) skip=1 ;;
        -Wl,*) set -- "$@" "$word" ;;
        -I* | -D* | -W* | -std=* | -pedantic*) ;;
        *.c | *.cpp | *.S)
            count=$((count + 1))
            set -- "$@" "$objects/$count.o"
            ;;
        *) set -- "$@" "$word" ;;
        esac
    done
    ccache "$compiler" "$@"
}

sources=0 only='' here=''
for word; do
    case $word in
    # other files are made, or the words mean another thing
    -S | -E | -M* | -x* | - | @* | -fsyntax-only | -fstack-usage | -fcallgraph-info* | \
        -flto* | -fprofile* | -ftest-coverage | --coverage | -save-temps* | -fdump* | \
        -gsplit-dwarf | -v | -### | *.cc | *.cxx | *.s)
        exec ccache "$compiler" "$@"
        ;;
    -c) only=1 ;;
    -I | -I[!/]* | -isystem | -iquote* | -include | -imacros | -B*) here=1 ;;
    *.c | *.cpp | *.S) sources=$((sources + 1)) ;;
    esac
done
if [ $sources = 0 ] || [ "$only$sources" = 11 ]; then
    exec ccache "$compiler" "$@"
fi

objects=$PWD count=0 failed=0
[ -n "$only" ] || objects=$(mktemp -d)
for path; do
    case $path in
    *.c | *.cpp | *.S) ;;
    *) continue ;;
    esac
    count=$((count + 1)) stem=$count
    if [ -n "$only" ]; then
        stem=${path##*/}
        stem=${stem%.*}
    fi
    compile "$path" "$objects/$stem.o" "$@" || failed=$?
done
if [ -z "$only" ]; then
    [ $failed != 0 ] || link "$@" || failed=$?
    rm -r "$objects"
fi
exit $failed
