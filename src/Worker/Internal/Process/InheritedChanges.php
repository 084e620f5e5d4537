<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal\Process;

use Spindle\Internal\Warnings;

/**
 * Runs in the host, the process that forks workers. Repeats each change that the pool's process has made to its working
 * directory, umask or environment, so that the next worker inherits the change. A change that the bootstrap file made
 * in the host stays until the pool's process changes the same setting.
 */
final class InheritedChanges
{
    /** Entries of $_SERVER that PHP sets itself, even if a variable of the environment has the same name. */
    private const OWN_VARIABLES = [
        'PHP_SELF', 'SCRIPT_NAME', 'SCRIPT_FILENAME', 'PATH_TRANSLATED', 'DOCUMENT_ROOT', 'REQUEST_TIME',
        'REQUEST_TIME_FLOAT', 'argv', 'argc',
    ];

    /** Whether the last chdir() failed, so that the host is in another directory than the pool's process. */
    private bool $lastChdirFailed = false;

    /**
     * @param array{
     *     directory: string, moved: bool, umask: int|null, set: array<array-key, string>, unset: list<int|string>,
     * } $changes {@see \Spindle\Worker\Internal\InheritedState::changesSince()}
     *
     * @return string|null why no worker can be started; null if a worker can be started
     */
    public function apply(#[\SensitiveParameter] array $changes): ?string
    {
        if ($changes['umask'] !== null) {
            umask($changes['umask']);
        }
        $this->changeEnvironment($changes['set'], $changes['unset']);
        if (!$changes['moved'] && !$this->lastChdirFailed && getcwd() !== false) {
            return null;
        }
        [$isChanged, $warning] = Warnings::of(static fn(): bool => chdir($changes['directory']));
        $this->lastChdirFailed = !$isChanged;

        return $isChanged ? null : "Can't enter the working directory '{$changes['directory']}': {$warning}";
    }

    /**
     * @param array<array-key, string> $set
     * @param list<int|string>          $unset
     */
    private function changeEnvironment(#[\SensitiveParameter] array $set, array $unset): void
    {
        $order = strtoupper((string) \ini_get('variables_order'));
        $inEnv = str_contains($order, 'E');
        $inServer = str_contains($order, 'S');
        foreach ($unset as $name) {
            putenv((string) $name);
            unset($_ENV[$name]);
            if (!\in_array($name, self::OWN_VARIABLES, true)) {
                unset($_SERVER[$name]);
            }
        }
        foreach ($set as $name => $value) {
            putenv("{$name}={$value}");
            if ($inEnv) {
                $_ENV[$name] = $value;
            }
            if ($inServer && !\in_array($name, self::OWN_VARIABLES, true)) {
                $_SERVER[$name] = $value;
            }
        }
    }
}
