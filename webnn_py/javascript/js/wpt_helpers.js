// What the newest web-platform-tests take from helpers of their own, where the checkout's are older and lack it: a
// context, the tolerance of what is exact, and the data types and ranks that every implementation must have (webnn issue
// 910). Evaluated before the test file itself.
(function (global) {
  'use strict';

  const lacks = (name) => {
    try {
      // Helpers are declared by const and let, which are no properties of the global object.
      return (0, eval)(`typeof ${name}`) === 'undefined';
    } catch {
      return false;
    }
  };
  const helpers = {
    getContext: () => navigator.ml.createContext(),
    getZeroULPTolerance: () => ({metricType: 'ULP', value: 0}),
    requiredDataTypesAndRanks: undefined,
    async getRequiredDataTypesAndRanks() {
      const response = await fetch('/webnn/resources/minimum_datatype_set.json');
      if (!response.ok) throw new Error(`minimum_datatype_set.json: status ${response.status}`);
      // Lines of comments stand in the file of web-platform-tests.
      global.requiredDataTypesAndRanks = JSON.parse((await response.text()).replace(/^\s*\/\/.*$/gm, ''));
      return global.requiredDataTypesAndRanks;
    },
    checkMinimum: ({dataType, shape}, {dataTypes, rankRange}) =>
        dataTypes.includes(dataType) && rankRange.min <= shape.length && shape.length <= rankRange.max,
  };
  for (const [name, value] of Object.entries(helpers)) {
    if (lacks(name)) Object.defineProperty(global, name, {value, writable: true, configurable: true, enumerable: false});
  }
})(globalThis);
