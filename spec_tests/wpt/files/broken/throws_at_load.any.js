'use strict';
test(() => {}, 'a test before the exception');
nobodyDefinedThis();
