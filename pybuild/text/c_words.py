"""Names that generated C must not use: words of C and C++, of compilers, of the C
library, and of build systems. The one table; knows no model."""

from __future__ import annotations

_KEYWORDS = (
    "auto break case char const continue default do double else enum extern float for "
    "goto if inline int long register restrict return short signed sizeof static "
    "struct switch typedef union unsigned void volatile while alignas alignof bool "
    "constexpr false nullptr static_assert thread_local true typeof typeof_unqual "
    # C++
    "and and_eq asm bitand bitor catch char16_t char32_t char8_t class co_await "
    "co_return co_yield compl concept const_cast consteval constinit decltype delete "
    "dynamic_cast explicit export friend mutable namespace new noexcept not not_eq "
    "operator or or_eq private protected public reinterpret_cast requires static_cast "
    "std template this throw try typeid typename using virtual wchar_t xor xor_eq"
)
_MACROS = (
    # of compilers, by -std=gnu11
    "alpha arm hppa hpux i386 linux m68k mc68000 mips riscv sgi sparc sun ultrix unix "
    "vax "
    # of headers, with -D_GNU_SOURCE: of newlib 3.3, 4.5, picolibc 1.8, avr-libc
    "assert basename complex direct errno fd_set fds_bits imaginary main "
    "math_errhandling no_argument noreturn null offsetof optional_argument physadr "
    "quad required_argument signgam st_atime st_ctime st_mtime stderr stdin stdout "
    "strtodf tzname unreachable "
    # and of glibc 2.36 and 2.41 and of musl, without those of protocols
    "alloca d_fileno h_addr h_errno ifa_broadaddr ifa_dstaddr ifc_buf ifc_req ifr_addr "
    "ifr_bandwidth ifr_broadaddr ifr_data ifr_dstaddr ifr_flags ifr_hwaddr ifr_ifindex "
    "ifr_map ifr_metric ifr_mtu ifr_name ifr_netmask ifr_newname ifr_qlen ifr_slave "
    "loff_t s6_addr s6_addr16 s6_addr32 sa_handler sa_sigaction sched_priority setjmp "
    "si_addr si_addr_lsb si_arch si_band si_call_addr si_fd si_int si_lower si_overrun "
    "si_pid si_pkey si_ptr si_status si_stime si_syscall si_timerid si_uid si_upper "
    "si_utime si_value sigev_notify_attributes sigev_notify_function "
    "sigev_notify_thread_id ut_addr ut_name ut_time ut_xtime "
    # of avr-libc 2.0 and of clang's stdatomic.h
    "acosf asinf atan2f atanf cbrtf ceilf copysignf cosf coshf expf fabsf fdimf floorf "
    "fmaf fmaxf fminf fmodf frexpf hypotf isfinitef isinff isnanf ldexpf log10f logf "
    "lrintf lroundf powf roundf signbitf sinf sinhf squaref tanf tanhf truncf "
    "atomic_compare_exchange_strong_explicit atomic_compare_exchange_weak_explicit "
    "atomic_exchange_explicit atomic_fetch_add_explicit atomic_fetch_and_explicit "
    "atomic_fetch_or_explicit atomic_fetch_sub_explicit atomic_fetch_xor_explicit "
    "atomic_init atomic_load_explicit atomic_store_explicit"
)
_LIBRARY = (
    "abort abs acos acosh aligned_alloc asctime asin asinh atan atan2 atanh atexit "
    "atof atoi atol atoll bsearch btowc calloc cbrt ceil clearerr clock copysign cos "
    "cosh ctime difftime div erf erfc exit exp exp2 expm1 fabs fclose fdim feof ferror "
    "fflush fgetc fgetpos fgets floor fma fmax fmin fmod fopen fprintf fputc fputs "
    "fread free freopen frexp fscanf fseek fsetpos ftell fwrite getc getchar getenv "
    "gets gmtime hypot ilogb isalnum isalpha isblank iscntrl isdigit isgraph islower "
    "isprint ispunct isspace isupper isxdigit labs ldexp ldiv lgamma llabs lldiv "
    "llrint llround localeconv localtime log log10 log1p log2 logb longjmp lrint "
    "lround malloc mblen mbstowcs mbtowc memchr memcmp memcpy memmove memset mktime "
    "modf nan nearbyint nextafter perror pow printf putc putchar puts qsort raise rand "
    "realloc remainder remove remquo rename rewind rint round scanf setbuf setlocale "
    "setvbuf sin sinh snprintf sprintf sqrt srand sscanf strcat strchr strcmp strcoll "
    "strcpy strcspn strdup strerror strftime strlen strncat strncmp strncpy strpbrk "
    "strrchr strspn strstr strtod strtof strtok strtol strtold strtoll strtoul "
    "strtoull strxfrm system tan tanh tgamma tmpfile tmpnam tolower toupper trunc "
    "ungetc va_arg va_copy va_end va_start vfprintf vprintf vscanf vsnprintf vsprintf "
    "wcstombs wctomb "
    # structs, and what *_init is there already
    "addrinfo atomic cnd dirent flock group iovec itimerval lconv linger msghdr mtx "
    "option passwd pollfd rusage sem sigaction sockaddr stat termios timespec timeval "
    "timezone tm utsname winsize"
)
# a header of ours would hide them, or be hidden
_HEADERS = (
    "alloca ar argz assert complex cpio ctype devctl dirent dlfcn elf endian envlock "
    "envz errno error fastmath fcntl features fenv float fnmatch ftw getopt glob grp "
    "iconv ieeefp inttypes iso646 langinfo libgen limits locale malloc math memory "
    "mqueue ndbm netdb newlib paths poll printf pthread pwd reent regdef regex resolv "
    "sched search semaphore setjmp signal spawn stdalign stdarg stdatomic stdbit "
    "stdbool stdckdint stddef stdint stdio stdio_ext stdlib stdnoreturn string "
    "strings syslog tar termios tgmath threads time uchar ucontext unctrl unistd "
    "utime utmp wait wchar wctype wordexp"
)
# targets of make, CMake and Meson; files that Windows cannot have, and its macros
_BUILDS = (
    "cdecl far fortran huge interface interrupt near pascal "
    "all benchmark clean coverage dist distcheck help install package phony "
    "reconfigure test uninstall aux con nul prn com1 com2 com3 com4 com5 com6 com7 "
    "com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9"
)
# no name of anything in a header
WORDS = frozenset(f"{_KEYWORDS} {_MACROS}".split())
# nor of a model
TAKEN = WORDS | frozenset(f"{_LIBRARY} {_HEADERS} {_BUILDS}".split())
BEGINNINGS = ("crt_", "pthread_")
