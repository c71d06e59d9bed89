// Reads what a scheduler's commands print, as its table says. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/workflow/scheduler_table.h"

namespace tally {

// The fields of a job, by the scheduler's names and by those of ours that the table gives.
using JobFields = std::map<std::string, std::string>;

// Fails if the text is not a whole answer of this form: nothing is concluded from it then.
Status read_answer(const AnswerForm& form, const std::string& text, std::vector<JobFields>* jobs);

// A job that the scheduler says not to have has no report: *known is false then.
JobReport report_of(const SchedulerTable& table, const AnswerForm& form, const JobFields& fields,
                    bool* known);

// The id in the last line that has the table's form, or nothing.
std::string submitted_id(const SchedulerTable& table, const std::string& printed);

// Why a submission failed, where the words of its command tell it.
std::optional<Refusal> refusal_by_words(const SchedulerTable& table, const std::string& said);

// Whether a command that failed says no more than that jobs are not known. Words about a scheduler
// that cannot be reached take that away: what it did not say of other jobs is not known then.
bool says_unknown_alone(const SchedulerTable& table, const TableQuestion& question,
                        const std::string& said);

// The resources that an ended job used.
JobUse use_of(const JobFields& fields);

}  // namespace tally
