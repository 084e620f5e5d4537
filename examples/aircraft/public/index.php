<?php

declare(strict_types=1);

// The front controller for PHP-FPM and `php -S 127.0.0.1:8087 public/index.php`.

use Spindle\Http\Sapi;

require_once __DIR__ . '/../../../vendor/autoload.php';

Sapi::run(__DIR__ . '/../app.php');
