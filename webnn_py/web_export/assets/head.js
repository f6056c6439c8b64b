// A graph of the Web Neural Network API (https://www.w3.org/TR/webnn/), written by webnn_py's save_js().
//
//   import {load} from './model.js';
//   const model = await load();
//   const results = await model.run({NAME: new Float32Array(…), …});

