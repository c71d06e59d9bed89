#include "engine/workflow/chart_words.h"

namespace tally {

void set_chart_kind(const std::string& word, Chart* chart) {
  if (word == "bar") chart->kind = ChartKind::bar;
  if (word == "line") chart->kind = ChartKind::line;
  if (word == "scatter") chart->kind = ChartKind::scatter;
  if (word == "curve") chart->kind = ChartKind::curve;
}

void set_chart_ideal(const std::string& word, Chart* chart) {
  if (word == "none") chart->ideal = ChartIdeal::none;
  if (word == "linear") chart->ideal = ChartIdeal::linear;
  if (word == "inverse") chart->ideal = ChartIdeal::inverse;
  if (word == "constant") chart->ideal = ChartIdeal::constant;
}

void set_chart_error(const std::string& word, Chart* chart) {
  if (word == "none") chart->error = Uncertainty::none;
  if (word == "ci") chart->error = Uncertainty::ci;
  if (word == "range") chart->error = Uncertainty::range;
  if (word == "mad") chart->error = Uncertainty::mad;
}

void set_chart_log(const std::string& word, Chart* chart) {
  if (word != "none" && word != "x" && word != "y" && word != "xy") return;
  chart->log_x = word[0] == 'x';
  chart->log_y = word == "y" || word == "xy";
}

}  // namespace tally
