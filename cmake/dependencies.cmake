# SPDX-License-Identifier: Apache-2.0
# The library needs libc and threads only. What the program and the tests need is left out, with a word, when missing.
find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)

function(kvlane_find name module)
	if(PkgConfig_FOUND)
		pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
	endif()
	set(${name}_FOUND ${${name}_FOUND} PARENT_SCOPE)
endfunction()

if(KVLANE_TOOLS)
	kvlane_find(JANSSON "jansson>=2.14")
	if(NOT JANSSON_FOUND)
		message(STATUS "The program kvlane is left out: it needs libjansson 2.14 (Debian: libjansson-dev)")
		set(KVLANE_TOOLS OFF)
	endif()
endif()

if(KVLANE_TESTS)
	kvlane_find(CMOCKA "cmocka>=1.1.5")
	if(NOT CMOCKA_FOUND)
		message(STATUS "The unit tests are left out: they need libcmocka 1.1.5 (Debian: libcmocka-dev)")
	endif()
endif()

find_program(KVLANE_NVCC nvcc HINTS /usr/local/cuda/bin)
if(KVLANE_CUDA AND NOT KVLANE_NVCC)
	message(FATAL_ERROR "KVLANE_CUDA is on, but nvcc is neither in PATH nor in /usr/local/cuda/bin")
endif()
