<?php

declare(strict_types=1);

/*
 * A child process of contexts.php, on the PHP that is measured; prints one line of JSON.
 *
 *     context.php ways                what this PHP is, and why it can't do what it can't
 *     context.php create WAY MAX      the seconds that so many take
 *     context.php work ITERATIONS     the seconds that the same CPU work takes
 */

use Spindle\Bench\Contexts\CpuWork;
use Spindle\Bench\Contexts\Creation;
use Spindle\Bench\Contexts\Way;

// Composer's autoloader only where classes of Spindle are needed: what a fork copies is to be little.
foreach (['Way', 'Creation', 'CpuWork'] as $class) {
    require __DIR__ . "/Contexts/{$class}.php";
}

/** @var non-empty-list<string> $argv */
$way = Way::tryFrom($argv[2] ?? '');
if ($way === Way::Worker || $way === Way::PosixSpawn || $way === Way::PosixSpawnPhp) {
    require __DIR__ . '/bootstrap.php';
}

$result = match ($argv[1] ?? '') {
    'ways' => [
        'version' => PHP_VERSION,
        'kind' => (bool) PHP_ZTS ? 'ZTS' : 'NTS',
        'missing' => array_combine(array_column(Way::cases(), 'value'), array_map(static fn(Way $way): ?string => $way->missing(), Way::cases())),
    ],
    'create' => ['seconds' => Creation::seconds($way ?? Way::Fork, (int) ($argv[3] ?? 100))],
    'work' => CpuWork::run((int) ($argv[2] ?? 1_000_000)),
    default => throw new RuntimeException('give ways, create or work'),
};
echo json_encode($result, JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION), "\n";
