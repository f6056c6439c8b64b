// META: title=a file without a test
'use strict';
