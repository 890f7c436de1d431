# What find_package(Zephyr) does with modules, for programs of this machine: the CMake
# of each of ZEPHYR_EXTRA_MODULES, with the CONFIG_ of -DDOTCONFIG=file; libraries are
# linked whole, as Zephyr links them. APPVERSION and boards there are none.
project(Zephyr-Kernel C)
include(CheckCCompilerFlag)
include("${DOTCONFIG}")

add_library(zephyr_interface INTERFACE)
# Zephyr's default language, and its name
target_compile_options(zephyr_interface INTERFACE -std=c17 -Wall -Wextra -Werror)
target_compile_definitions(zephyr_interface INTERFACE __ZEPHYR__=1)
add_executable(app)
target_link_libraries(app PRIVATE zephyr_interface)

macro(zephyr_library_named name)
    set(ZEPHYR_CURRENT_LIBRARY ${name})
    add_library(${name} STATIC)
    target_link_libraries(${name} PUBLIC zephyr_interface)
    target_link_libraries(app PRIVATE -Wl,--whole-archive ${name} -Wl,--no-whole-archive)
endmacro()

function(zephyr_library_sources)
    foreach(file IN LISTS ARGN)
        get_filename_component(whole "${file}" ABSOLUTE)
        target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE "${whole}")
    endforeach()
endfunction()

function(zephyr_library_cc_option)
    foreach(option IN LISTS ARGN)
        string(MAKE_C_IDENTIFIER "knows${option}" known)
        check_c_compiler_flag("${option}" ${known})
        if(${known})
            target_compile_options(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${option})
        endif()
    endforeach()
endfunction()

function(zephyr_include_directories)
    foreach(folder IN LISTS ARGN)
        get_filename_component(whole "${folder}" ABSOLUTE)
        target_include_directories(zephyr_interface INTERFACE "${whole}")
    endforeach()
endfunction()

function(zephyr_compile_definitions)
    target_compile_definitions(zephyr_interface INTERFACE ${ARGN})
endfunction()

foreach(module IN LISTS ZEPHYR_EXTRA_MODULES)
    file(STRINGS "${module}/zephyr/module.yml" line REGEX "^  cmake: ")
    string(REPLACE "  cmake: " "" folder "${line}")
    get_filename_component(name "${module}" NAME)
    add_subdirectory("${module}/${folder}" "${CMAKE_BINARY_DIR}/modules/${name}")
endforeach()
