<?php

declare(strict_types=1);

/*
 * A child process of contexts.php, on the measured PHP. Prints one line of JSON.
 *
 *     context.php ways                version of this PHP, and why ways are missing
 *     context.php create WAY MAX      seconds to create MAX contexts
 *     context.php work ITERATIONS     seconds for the same CPU work
 */

use Spindle\Bench\Contexts\CpuWork;
use Spindle\Bench\Contexts\Creation;
use Spindle\Bench\Contexts\Way;

// Composer's autoloader is loaded only when classes of Spindle are needed, to keep the memory that a fork copies small.
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
        'missing' => array_combine(
            array_column(Way::cases(), 'value'),
            array_map(static fn(Way $way): ?string => $way->missing(), Way::cases()),
        ),
    ],
    'create' => ['seconds' => Creation::seconds($way ?? Way::Fork, (int) ($argv[3] ?? 100))],
    'work' => CpuWork::run((int) ($argv[2] ?? 1_000_000)),
    default => throw new RuntimeException('give ways, create or work'),
};
echo json_encode($result, JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION), "\n";
