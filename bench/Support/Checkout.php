<?php

declare(strict_types=1);

namespace Spindle\Bench\Support;

/**
 * A checkout of Spindle to measure, with the packages in its own vendor/ folder.
 *
 * The measuring programs are always those of this checkout. {@see command()} makes their bench/autoload.php load
 * Spindle from the folder, so each checkout runs in separate processes.
 */
final readonly class Checkout
{
    /** Environment variable with the checkout that a measuring program loads. */
    public const VARIABLE = 'SPINDLE_BENCH_CHECKOUT';

    /** Exit status of a measuring program that is incompatible with the checkout's API; see bench/bootstrap.php. */
    public const MISFIT = 3;

    /** A public class; its file shows which Spindle an autoloader loads. */
    private const PUBLIC_CLASS = 'Spindle\Command\CommandPool';

    private const DEV_NULL = ['file', '/dev/null', 'w'];

    /**
     * @param string $revision git's name of the revision, else the name of the folder
     * @param bool   $isOther  whether this checkout is compared with the present one
     */
    private function __construct(
        public string $folder,
        public string $revision,
        public bool $isOther,
        private bool $isNamed,
    ) {}

    /** Returns this checkout, for a run without a comparison. */
    public static function alone(): self
    {
        return self::in(\dirname(__DIR__, 2), false, false);
    }

    /**
     * Returns this checkout and the one in the folder. Both load classes the same way, at the same cost.
     *
     * @return array{self, self}
     *
     * @throws UsageException when the folder has no Spindle, no packages, or packages of another folder
     */
    public static function withOther(string $path): array
    {
        $folder = (string) realpath($path);
        if ($folder === '' || !is_dir("{$folder}/src/Command")) {
            throw new UsageException(
                "option --against: '{$path}' is not a checkout of Spindle; give the folder of one",
            );
        }
        if (!is_file("{$folder}/vendor/autoload.php")) {
            throw new UsageException("option --against: '{$path}' has no packages; run composer install there");
        }
        $loaded = self::loadedFrom($folder);
        if (!str_starts_with($loaded, "{$folder}/src/")) {
            $what = $loaded === '' ? 'does not load Spindle' : "loads {$loaded}";
            throw new UsageException(
                "option --against: the autoloader of '{$path}' {$what}; run composer install there",
            );
        }

        return [self::in(\dirname(__DIR__, 2), false, true), self::in($folder, true, true)];
    }

    /** Returns a message when the checkout's API is incompatible with this program, null for other failures. */
    public static function incompatibility(\Throwable $failure): ?string
    {
        $folder = getenv(self::VARIABLE);
        while (($previous = $failure->getPrevious()) !== null) {
            $failure = $previous;
        }

        return $failure instanceof \Error && \is_string($folder) && $folder !== \dirname(__DIR__, 2)
            ? "its API is incompatible with this measurement: {$failure->getMessage()}"
            : null;
    }

    /** Returns the name of a contestant of this checkout in tables. */
    public function label(string $contestant): string
    {
        return $this->isOther ? "{$contestant} ({$this->revision})" : $contestant;
    }

    /** @return string revision and folder */
    public function describe(): string
    {
        return "{$this->revision}, {$this->folder}";
    }

    /**
     * Returns a command line that runs with Spindle from this checkout.
     *
     * @param non-empty-list<string> $command
     *
     * @return non-empty-list<string>
     */
    public function command(array $command): array
    {
        return $this->isNamed ? ['env', self::VARIABLE . "={$this->folder}", ...$command] : $command;
    }

    /** Returns whether programs get the folder in their environment. */
    public function isNamed(): bool
    {
        return $this->isNamed;
    }

    private static function in(string $folder, bool $isOther, bool $isNamed): self
    {
        return new self($folder, $isNamed ? self::revisionOf($folder) : '', $isOther, $isNamed);
    }

    private static function revisionOf(string $folder): string
    {
        $git = static fn(string $arguments): string => Program::find('git') === null
            ? ''
            : trim(Program::run(['git', '-C', $folder, ...explode(' ', $arguments)], errors: self::DEV_NULL)[1]);
        if ($git('rev-parse --show-toplevel') !== $folder) {
            return basename($folder);
        }

        return $git('rev-parse --short HEAD') . ($git('status --porcelain') === '' ? '' : ' with changes');
    }

    /** @return string file from which the folder's autoloader loads a class of Spindle; '' for none */
    private static function loadedFrom(string $folder): string
    {
        $code = 'require $argv[1] . "/vendor/autoload.php"; echo (new ReflectionClass($argv[2]))->getFileName();';
        $command = [\PHP_BINARY, ...Program::PHP_OPTIONS, '-r', $code, '--', $folder, self::PUBLIC_CLASS];
        [$status, $output] = Program::run($command, errors: self::DEV_NULL);

        return $status === 0 ? trim($output) : '';
    }
}
