// What is chosen: it stands in the address, so that a link leads to the same view.
var choice = { show: '', beside: '', from: null, to: null, hide: [], whole: false };
var listeners = [];

function readChoice() {
  var said = new URLSearchParams(location.hash.slice(1));
  var number = function (key) {
    var value = parseFloat(said.get(key));
    return isFinite(value) && value >= 0 ? value : null;
  };
  choice.show = said.get('show') || '';
  choice.beside = said.get('beside') || '';
  choice.from = number('from');
  choice.to = number('to');
  if (choice.from === null || choice.to === null || choice.to <= choice.from) { choice.from = choice.to = null; }
  choice.hide = said.getAll('hide');
  choice.whole = said.has('whole');
}

function choose(change) {
  Object.keys(change).forEach(function (key) { choice[key] = change[key]; });
  var said = new URLSearchParams();
  if (choice.show) { said.set('show', choice.show); }
  if (choice.beside) { said.set('beside', choice.beside); }
  if (choice.from !== null) {
    said.set('from', String(choice.from));
    said.set('to', String(choice.to));
  }
  choice.hide.forEach(function (name) { said.append('hide', name); });
  if (choice.whole) { said.set('whole', ''); }
  history.replaceState(null, '', '#' + said.toString());
  listeners.forEach(function (listener) { listener(); });
}

function followChoice(listener) { listeners.push(listener); }

window.addEventListener('hashchange', function () {
  readChoice();
  listeners.forEach(function (listener) { listener(); });
});
readChoice();

// Round numbers from `from` to `to`, at most about `most` of them.
function ticks(from, to, most) {
  var raw = (to - from) / most;
  if (!(raw > 0) || !isFinite(raw)) { return [from]; }
  var power = Math.pow(10, Math.floor(Math.log10(raw)));
  var step = [1, 2, 5, 10].map(function (factor) { return factor * power; })
    .find(function (step) { return step >= raw * 0.999; });
  var found = [];
  for (var number = Math.ceil(from / step - 1e-6); number * step <= to * 1.0001; number++) { found.push(number * step); }
  return found;
}

function seconds(value) {
  var digits = function (value) { return String(Math.round(value * 1000) / 1000); };
  if (value === 0) { return '0'; }
  if (value < 1e-3) { return digits(value * 1e6) + ' µs'; }
  return value < 1 ? digits(value * 1e3) + ' ms' : digits(value) + ' s';
}

// Draws an axis, and the lines above it where there is a grid.
function drawAxis(axis, grid, from, to) {
  var at = function (tick) { return (tick - from) / (to - from) * 100 + '%'; };
  var found = ticks(from, to, axis.clientWidth < 420 ? 4 : 8);
  axis.replaceChildren.apply(axis, found.map(function (tick) {
    var label = document.createElement('span');
    label.style.left = at(tick);
    label.textContent = seconds(tick);
    var share = (tick - from) / (to - from);
    label.className = share < 0.02 ? 'first' : share > 0.97 ? 'last' : '';
    return label;
  }));
  if (grid) {
    grid.replaceChildren.apply(grid, found.map(function (tick) {
      var line = document.createElement('i');
      line.style.left = at(tick);
      return line;
    }));
  }
}
