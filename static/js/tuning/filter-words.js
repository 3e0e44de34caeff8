// A table's filter as its words: conditions of columns ("median<=20", "BLOCK_K==64|128"), and others.

const CONDITION = /^([A-Za-z][\w.]*)(<=|>=|!=|==|<|>|=)(.*)$/;

export function wordsOf(filter) {
  return filter.split(/\s+/).filter(Boolean);
}

// The column that a word is a condition of, with its comparison; null for any other word.
export function condition(word) {
  const found = CONDITION.exec(word);
  return found && { key: found[1], compare: found[2], operand: found[3] };
}

// The filter with other conditions for these columns: by key a list of "<=20", "==a|b"; none of a
// column takes its conditions away.
export function withConditions(filter, changes) {
  const kept = wordsOf(filter).filter((word) => !((condition(word)?.key ?? "") in changes));
  const added = Object.entries(changes).flatMap(([key, list]) => list.map((each) => `${key}${each}`));
  return [...kept, ...added].join(" ");
}

// Conditions that keep these of a parameter's values (places among them); none where all are kept.
export function conditionsOf(parameter, places) {
  const chosen = [...new Set(places)].sort((a, b) => a - b);
  if (!chosen.length || chosen.length === parameter.values.length) return [];
  const isRange = chosen.at(-1) - chosen[0] === chosen.length - 1;
  if (parameter.number && isRange && chosen.length > 1) {
    return [`>=${parameter.values[chosen[0]]}`, `<=${parameter.values[chosen.at(-1)]}`];
  }
  return [`==${chosen.map((place) => exact(parameter.values[place])).join("|")}`];
}

// The places of a parameter's values that a filter keeps.
export function placesIn(filter, parameter) {
  const own = wordsOf(filter).map(condition).filter((one) => one?.key === parameter.key);
  return parameter.values.map((_, place) => place).filter((place) => own.every((one) => holds(one, parameter, place)));
}

export function isLimited(filter, parameter) {
  return wordsOf(filter).some((word) => condition(word)?.key === parameter.key);
}

function holds({ compare, operand }, parameter, place) {
  const value = parameter.values[place];
  if (compare === "==") return operand.toLowerCase().split("|").includes(exact(value));
  if (!Number.isFinite(Number(value))) {
    const isIn = value.toLowerCase().includes(operand.toLowerCase());
    return compare === "=" ? isIn : compare === "!=" ? !isIn : true;
  }
  const [one, other] = [Number(value), Number(operand)];
  return { "<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other, "=": one === other, "!=": one !== other }[compare];
}

function exact(value) {
  return value === "not named" ? "" : value.toLowerCase().replaceAll(" ", "_");
}

// A bound with the digits that a person would type, never inside of what it bounds.
export function bound(value, isUpper) {
  if (!value) return "0";
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 3);
  const whole = isUpper ? Math.ceil(value / unit) : Math.floor(value / unit);
  return String(Number((whole * unit).toPrecision(12)));
}
