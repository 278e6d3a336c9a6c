# SPDX-License-Identifier: Apache-2.0
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(THREADS_PREFER_PTHREAD_FLAG ON)

if(NOT CMAKE_BUILD_TYPE AND PROJECT_IS_TOP_LEVEL)
	set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

set(KVLANE_WARNINGS -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual
	-Wvla -Werror)
add_compile_options(${KVLANE_WARNINGS})

# Linux calls everywhere; no file defines it itself.
add_compile_definitions(_GNU_SOURCE)

if(KVLANE_SANITIZE)
	add_compile_options(-fsanitize=${KVLANE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
	add_link_options(-fsanitize=${KVLANE_SANITIZE})
endif()
