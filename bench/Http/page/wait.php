<?php

declare(strict_types=1);

usleep(10_000);
header('Content-Type: text/plain; charset=utf-8');
echo 'Hello, world';
