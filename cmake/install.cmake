# SPDX-License-Identifier: Apache-2.0
# Everything finds the rest relative to where it lies, so that `cmake --install --prefix` and moved trees work.
include(CMakePackageConfigHelpers)

install(TARGETS kvlane kvlane_static EXPORT kvlane-targets
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
	ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/kvlane DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN CMakeLists.txt EXCLUDE)

if(TARGET kvlane-tool)
	file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
	set_target_properties(kvlane-tool PROPERTIES INSTALL_RPATH "\$ORIGIN/${bin_to_lib}")
	install(TARGETS kvlane-tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# CMake package: find_package(kvlane), then kvlane::kvlane or kvlane::kvlane_static.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kvlane)
configure_package_config_file(cmake/kvlane-config.cmake.in kvlane-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(kvlane-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT kvlane-targets NAMESPACE kvlane:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/kvlane-config.cmake ${PROJECT_BINARY_DIR}/kvlane-config-version.cmake
	DESTINATION ${package_dir})

# pkg-config file
file(RELATIVE_PATH KVLANE_PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/kvlane.pc.in kvlane.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kvlane.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
