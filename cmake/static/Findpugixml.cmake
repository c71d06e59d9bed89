# pugixml for a static program: the package's own configuration knows the shared library only.
find_path(PUGIXML_INCLUDE_DIR pugixml.hpp)
find_library(PUGIXML_ARCHIVE libpugixml.a)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(pugixml REQUIRED_VARS PUGIXML_ARCHIVE PUGIXML_INCLUDE_DIR)
if(pugixml_FOUND AND NOT TARGET pugixml::pugixml)
  add_library(pugixml::pugixml STATIC IMPORTED GLOBAL)
  set_target_properties(pugixml::pugixml PROPERTIES IMPORTED_LOCATION ${PUGIXML_ARCHIVE}
    INTERFACE_INCLUDE_DIRECTORIES ${PUGIXML_INCLUDE_DIR})
endif()
