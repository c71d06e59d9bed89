#include "engine/run/run_group.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "engine/base/accounts.h"

namespace tally {
namespace {

bool is_member(gid_t gid) {
  if (geteuid() == 0 || getegid() == gid) return true;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(count, 0)));
  return std::find(groups.begin(), groups.end(), gid) != groups.end();
}

}  // namespace

Status RunGroup::from_environment(RunGroup* out) {
  const char* name = std::getenv("JUBE_GROUP_NAME");
  if (name == nullptr || *name == '\0') return Status::ok();
  const std::optional<long> found = group_id(name);
  if (!found) {
    return Status::error(
        fmt::format("Failed to get group ID, group \"{}\" does not exist (JUBE_GROUP_NAME)", name));
  }
  if (!is_member(static_cast<gid_t>(*found))) {
    return Status::error(fmt::format("User \"{}\" is not in group \"{}\" (JUBE_GROUP_NAME)",
                                     effective_user(), name));
  }
  out->gid_ = *found;
  umask(002);
  return Status::ok();
}

Status RunGroup::give(const std::string& folder, bool inherit) const {
  if (gid_ < 0) return Status::ok();
  struct stat info {};
  if (chown(folder.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(gid_)) != 0 ||
      stat(folder.c_str(), &info) != 0 ||
      (inherit && chmod(folder.c_str(), (info.st_mode & 07777) | S_ISGID | S_IRWXG) != 0)) {
    return Status::error(
        fmt::format("{}: cannot be given to the group: {}", folder, std::strerror(errno)));
  }
  return Status::ok();
}

void RunGroup::open_to(const std::string& file) const {
  struct stat info {};
  if (gid_ < 0 || stat(file.c_str(), &info) != 0) return;
  [[maybe_unused]] const int done = chmod(file.c_str(), (info.st_mode & 07777) | S_IRGRP | S_IWGRP);
}

}  // namespace tally
