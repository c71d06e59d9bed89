# yaml-cpp for a static program: the package's own configuration knows the shared library only.
find_path(YAML_CPP_INCLUDE_DIR yaml-cpp/yaml.h)
find_library(YAML_CPP_ARCHIVE libyaml-cpp.a)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(yaml-cpp REQUIRED_VARS YAML_CPP_ARCHIVE YAML_CPP_INCLUDE_DIR)
if(yaml-cpp_FOUND AND NOT TARGET yaml-cpp)
  add_library(yaml-cpp STATIC IMPORTED GLOBAL)
  set_target_properties(yaml-cpp PROPERTIES IMPORTED_LOCATION ${YAML_CPP_ARCHIVE}
    INTERFACE_INCLUDE_DIRECTORIES ${YAML_CPP_INCLUDE_DIR})
endif()
