// META: script=nowhere.js
