#include "engine/chart/svg.h"

#ifdef TALLY_STATIC

namespace tally {

Status png_of_svg(const std::string&, std::string*) {
  return Status::error(
      "this tally is a static program, which cannot open the library librsvg that a PNG needs; "
      "write a .svg instead and convert it (rsvg-convert chart.svg -o chart.png)");
}

}  // namespace tally

#else

#include <dlfcn.h>

#include <memory>

namespace tally {
namespace {

// The parts of GLib's error that are read here. They are the same in all versions of GLib 2.
struct GError {
  unsigned domain;
  int code;
  char* message;
};

class Library {
 public:
  explicit Library(const char* name) : handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  template <typename Function>
  bool find(const char* name, Function** function) const {
    *function = handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, name));
    return *function != nullptr;
  }

 private:
  // Stays open: GLib's libraries cannot be unloaded.
  void* handle_;
};

struct Functions {
  void* (*new_from_data)(const unsigned char*, size_t, GError**) = nullptr;
  void* (*get_pixbuf)(void*) = nullptr;
  int (*save)(void*, char**, size_t*, const char*, char**, char**, GError**) = nullptr;
  void (*unref)(void*) = nullptr;
  void (*free)(void*) = nullptr;
  void (*error_free)(GError*) = nullptr;

  bool open() {
    const Library rsvg("librsvg-2.so.2");
    const Library pixbuf("libgdk_pixbuf-2.0.so.0");
    const Library object("libgobject-2.0.so.0");
    const Library glib("libglib-2.0.so.0");
    return rsvg.find("rsvg_handle_new_from_data", &new_from_data) &&
           rsvg.find("rsvg_handle_get_pixbuf", &get_pixbuf) &&
           pixbuf.find("gdk_pixbuf_save_to_bufferv", &save) &&
           object.find("g_object_unref", &unref) && glib.find("g_free", &free) &&
           glib.find("g_error_free", &error_free);
  }
};

}  // namespace

Status png_of_svg(const std::string& svg, std::string* png) {
  Functions with;
  if (!with.open()) {
    return Status::error(
        "a PNG needs the library librsvg-2.so.2, which is not installed (Debian: librsvg2-2); "
        "write a .svg instead");
  }
  GError* problem = nullptr;
  const auto failed = [&] {
    std::string why = problem == nullptr ? "no reason given" : problem->message;
    if (problem != nullptr) with.error_free(problem);
    return Status::error("librsvg cannot draw the chart: " + why);
  };
  const auto* bytes = reinterpret_cast<const unsigned char*>(svg.data());
  const std::unique_ptr<void, void (*)(void*)> handle(
      with.new_from_data(bytes, svg.size(), &problem), with.unref);
  if (!handle) return failed();
  const std::unique_ptr<void, void (*)(void*)> picture(with.get_pixbuf(handle.get()), with.unref);
  if (!picture) return failed();
  char* buffer = nullptr;
  size_t size = 0;
  if (with.save(picture.get(), &buffer, &size, "png", nullptr, nullptr, &problem) == 0)
    return failed();
  png->assign(buffer, size);
  with.free(buffer);
  return Status::ok();
}

}  // namespace tally

#endif
