// Bars of several experiments: some can be hidden, and one that is far longer than the next is cut.
var CUT = 2;
var hiders = document.getElementById('hiders');

function endOfBars(bars) {
  var times = all('[data-seconds]', bars)
    .filter(function (row) { return !row.hidden; })
    .map(function (row) { return parseFloat(row.dataset.seconds); })
    .sort(function (a, b) { return b - a; });
  var longest = times[0] || 1;
  var next = times[1] || longest;
  return !choice.whole && longest > CUT * next ? next * 1.05 : longest;
}

function drawBars() {
  var hidden = function (name) { return choice.hide.indexOf(name) >= 0; };
  all('[data-of]').forEach(function (one) { one.hidden = hidden(one.dataset.of); });
  all('[data-hide]').forEach(function (button) { button.setAttribute('aria-pressed', String(!hidden(button.dataset.hide))); });
  var cut = false;
  all('[data-bars]').forEach(function (bars) {
    var end = endOfBars(bars);
    bars.style.setProperty('--bars-zoom', String(parseFloat(bars.dataset.bars) / end));
    all('[data-seconds]', bars).forEach(function (row) {
      var over = parseFloat(row.dataset.seconds) > end * 1.0001;
      row.classList.toggle('cut', over);
      cut = cut || (over && !row.hidden);
    });
    var axis = bars.querySelector('.axis');
    if (axis) { drawAxis(axis, null, 0, end); }
  });
  var whole = document.getElementById('whole');
  whole.hidden = !cut && !choice.whole;
  whole.setAttribute('aria-pressed', String(choice.whole));
}

if (hiders) {
  hiders.hidden = false;
  all('[data-hide]').forEach(function (button) {
    button.addEventListener('click', function () {
      var name = button.dataset.hide;
      var without = choice.hide.filter(function (other) { return other !== name; });
      choose({ hide: without.length < choice.hide.length ? without : without.concat([name]) });
    });
  });
  document.getElementById('whole').addEventListener('click', function () { choose({ whole: !choice.whole }); });
  followChoice(drawBars);
  window.addEventListener('resize', drawBars);
  drawBars();
}
