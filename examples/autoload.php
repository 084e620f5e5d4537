<?php

declare(strict_types=1);

// Loads the classes for the examples, in a checkout of Spindle and in vendor/spindle/spindle of an application.

$checkout = dirname(__DIR__) . '/vendor/autoload.php';

return require is_file($checkout) ? $checkout : dirname(__DIR__, 3) . '/autoload.php';
