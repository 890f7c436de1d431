# A component's CMakeLists.txt as a script, which only says what it requires.
cmake_policy(SET CMP0057 NEW)
set(CMAKE_BUILD_EARLY_EXPANSION 1)

macro(idf_component_register)
    set(registered 1)
    return()
endmacro()

function(ask)
    include("${FOLDER}/CMakeLists.txt")
endfunction()

ask()
