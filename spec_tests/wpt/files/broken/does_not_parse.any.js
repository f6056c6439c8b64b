test(() => {}, 'never seen';
