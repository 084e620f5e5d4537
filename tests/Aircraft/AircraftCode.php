<?php

declare(strict_types=1);

namespace Spindle\Tests\Aircraft;

/** PHP code that starts the aircraft application. */
trait AircraftCode
{
    /**
     * Returns the PHP code of an app.php, for `spindle serve` and for a front controller.
     *
     * @param array<string, string> $environment
     */
    private function aircraft(array $environment): string
    {
        $settings = '';
        foreach ($environment as $name => $value) {
            $settings .= 'putenv(' . var_export("{$name}={$value}", true) . ');';
        }

        return "{$settings} return require "
            . var_export(\dirname(__DIR__, 2) . '/examples/aircraft/app.php', true)
            . ';';
    }
}
