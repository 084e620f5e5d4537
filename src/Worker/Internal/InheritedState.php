<?php

declare(strict_types=1);

namespace Spindle\Worker\Internal;

use Spindle\Internal\Launcher\Environment;
use Spindle\Internal\Launcher\LauncherProtocol;
use Spindle\Worker\WorkerStartException;

/** State that a worker inherits from the process that starts it: working directory, umask and environment. */
final class InheritedState
{
    /** @param array<array-key, string> $environment */
    private function __construct(
        public readonly string $directory,
        public readonly int $umask,
        public readonly array $environment,
    ) {}

    /** @return array<string, mixed> without the environment, which may be secret */
    public function __debugInfo(): array
    {
        return ['directory' => $this->directory, 'umask' => $this->umask];
    }

    /** @throws WorkerStartException when the working directory no longer exists */
    public static function current(): self
    {
        clearstatcache();
        $directory = getcwd();
        $isHidden = (string) \ini_get('open_basedir') !== ''; // is_dir() returns false for hidden directories, too
        if ($directory === false || (!$isHidden && !is_dir($directory))) {
            throw WorkerStartException::impossible(
                'the working directory of this process no longer exists. Change to another one with chdir()',
            );
        }

        return new self($directory, umask(), Environment::variables());
    }

    /**
     * Returns the changes since an earlier state. The result contains the directory even if it has not changed, because
     * the host calls chdir() again if its last chdir() failed.
     *
     * @return array{
     *     directory: string, moved: bool, umask: int|null, set: array<array-key, string>, unset: list<int|string>,
     * }
     */
    public function changesSince(self $former): array
    {
        $marker = [LauncherProtocol::MARKER => '']; // not inherited, because the host sets this variable for each fork
        $isSame = $this->environment === $former->environment;

        return [
            'directory' => $this->directory,
            'moved' => $this->directory !== $former->directory,
            'umask' => $this->umask === $former->umask ? null : $this->umask,
            'set' => $isSame ? [] : array_diff_key(array_diff_assoc($this->environment, $former->environment), $marker),
            'unset' => $isSame ? [] : array_keys(array_diff_key($former->environment, $this->environment, $marker)),
        ];
    }
}
