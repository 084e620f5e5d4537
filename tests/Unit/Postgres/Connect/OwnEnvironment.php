<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Postgres\Connect;

use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\Before;

/** Replaces libpq's environment variables for a test. */
trait OwnEnvironment
{
    /** @var array<string, string> */
    private array $environment = [];

    #[Before]
    protected function clearEnvironment(): void
    {
        $this->environment = array_filter(
            getenv(),
            static fn(string $name): bool => str_starts_with($name, 'PG') || $name === 'HOME',
            \ARRAY_FILTER_USE_KEY,
        );
        array_map(putenv(...), array_keys($this->environment));
    }

    #[After]
    protected function restoreEnvironment(): void
    {
        foreach (array_keys(getenv()) as $name) {
            if (str_starts_with($name, 'PG')) {
                putenv($name);
            }
        }
        foreach ($this->environment as $name => $value) {
            putenv("{$name}={$value}");
        }
    }
}
