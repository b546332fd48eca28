// One experiment at a time, or two side by side.
var switcher = document.getElementById('switcher');

function drawExperiments() {
  var articles = all('article[data-name]');
  var named = function (name) { return articles.find(function (one) { return one.dataset.name === name; }); };
  var shown = named(choice.show) || articles[0];
  var second = named(choice.beside);
  if (second === shown) { second = undefined; }
  articles.forEach(function (article) {
    article.hidden = article !== shown && article !== second;
    article.style.order = article === shown ? '0' : '1';
  });
  document.getElementById('articles').classList.toggle('two', Boolean(second));
  document.body.classList.toggle('two', Boolean(second));
  all('[data-show]', switcher).forEach(function (button) {
    button.setAttribute('aria-pressed', String(button.dataset.show === shown.dataset.name));
  });
  document.getElementById('beside').value = second ? second.dataset.name : '';
}

if (switcher) {
  switcher.hidden = false;
  all('[data-show]', switcher).forEach(function (button) {
    button.addEventListener('click', function () { choose({ show: button.dataset.show }); });
  });
  document.getElementById('beside').addEventListener('change', function (event) {
    choose({ beside: event.target.value });
  });
  followChoice(drawExperiments);
  drawExperiments();
}
