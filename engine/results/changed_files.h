// Finds workpackages whose own outputs have changed since they ended: a process that outlived its
// command, a rotated log, an editor. Private to results/.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

class Journal;
struct WorkpackageView;

// Compares files with what the journal has of them. Other threads ask for them while the views are
// made, because to ask for 100,000 files takes a tenth of a second.
class ChangedFiles {
 public:
  ChangedFiles(const Journal& journal, const std::string& run_dir);
  ~ChangedFiles();
  ChangedFiles(const ChangedFiles&) = delete;
  ChangedFiles& operator=(const ChangedFiles&) = delete;

  // Takes a workpackage that ended well. `packed`: EndedFiles::packed().
  void add(int id, std::string packed);
  // Sets `changes` of the views. A file that is the same but in another place or with another time
  // is unchanged, and so is one that another workpackage of the run has left as it is now. A longer
  // file is unchanged where its writer may have gone on (EndedFiles::Writer). A workpackage whose
  // folder is gone has no changes: Scanner reports that.
  Status finish(std::vector<WorkpackageView>* views);

 private:
  struct Ended {
    int id = 0;
    std::string packed;
  };
  using Some = std::vector<Ended>;

  void look();

  const Journal& journal_;
  const std::string run_;  // absolute, with a slash
  int folder_ = -1;
  std::shared_ptr<Some> some_;
  std::vector<std::future<Some>> suspects_;  // those of which a file has another size or time
};

}  // namespace tally
