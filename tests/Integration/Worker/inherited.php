<?php

declare(strict_types=1);

chdir('/');
umask(0o007);
putenv('SPINDLE_TEST_CHANGED=bootstrap');
