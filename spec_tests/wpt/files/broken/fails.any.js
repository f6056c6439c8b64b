'use strict';
test(() => assert_equals(1, 2, 'one and two'), 'fails');
test(() => {}, 'passes');
