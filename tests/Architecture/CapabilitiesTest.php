<?php

declare(strict_types=1);

namespace Spindle\Tests\Architecture;

use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\TestCase;
use Spindle\Postgres\ConnectionFailedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Tests\EndsInTime;
use Spindle\Tests\Installation;
use Spindle\Tests\OwnDirectory;
use Spindle\Tests\Text;
use Symfony\Component\Process\Process;

/**
 * Each capability works alone, with the packages that are listed here and those that composer.json suggests for it.
 *
 * A project gets a copy of the folder of one capability, of those that it may use, and of what all of them share. Its
 * autoloader knows these folders and packages only.
 */
final class CapabilitiesTest extends TestCase
{
    use EndsInTime;
    use OwnDirectory;

    private const ROOT = __DIR__ . '/../..';

    /** The folder that all capabilities share. It uses none of them. */
    private const SHARED = 'Internal';

    /** Packages that each folder of src/ uses by itself. */
    private const PACKAGES = [
        self::SHARED => ['amphp/amp', 'amphp/dns', 'fidry/cpu-core-counter', 'psr/log', 'revolt/event-loop'],
        'Command' => ['amphp/amp', 'psr/log', 'revolt/event-loop'],
        'Worker' => ['amphp/amp', 'psr/log', 'revolt/event-loop'],
        'Postgres' => ['amphp/amp', 'psr/log', 'revolt/event-loop'],
        'Http' => [
            'amphp/amp',
            'nyholm/psr7',
            'psr/container',
            'psr/http-client',
            'psr/http-message',
            'psr/http-server-handler',
            'psr/http-server-middleware',
            'psr/log',
            'revolt/event-loop',
        ],
        'Remote' => ['amphp/amp', 'psr/http-message', 'psr/log', 'revolt/event-loop'],
        'Cli' => ['amphp/amp', 'psr/log', 'revolt/event-loop', 'symfony/console'],
    ];

    /** Extensions that PHP has unless it was built without them. */
    private const USUAL_EXTENSIONS = [
        'ext-core', 'ext-ctype', 'ext-date', 'ext-filter', 'ext-hash', 'ext-json', 'ext-pcre', 'ext-random',
        'ext-reflection', 'ext-session', 'ext-spl', 'ext-standard', 'ext-tokenizer', 'ext-zend opcache',
    ];

    /** Extensions that this PHP may not have, by the namespace of their classes. */
    private const EXTENSIONS = ['FFI' => 'ext-ffi', 'parallel' => 'ext-parallel'];

    /** @return iterable<string, array{string}> */
    public static function folders(): iterable
    {
        foreach (array_keys(self::PACKAGES) as $folder) {
            yield $folder => [$folder];
        }
    }

    #[DataProvider('folders')]
    public function testAFolderNeedsOnlyItsOwnRequirements(string $folder): void
    {
        $this->install($folder);

        self::assertSame([], $this->problems($folder));
    }

    public function testAnythingElseIsReported(): void
    {
        $this->install('Postgres');
        $this->file('vendor/spindle/spindle/src/Postgres/Extending.php', <<<'PHP'
            <?php
            namespace Spindle\Postgres;
            final class Extending implements \Psr\Http\Server\RequestHandlerInterface {}
            PHP);
        $this->file('vendor/spindle/spindle/src/Postgres/Using.php', <<<'PHP'
            <?php
            namespace Spindle\Postgres;
            use Spindle\Command\CommandPool;
            use function Amp\ByteStream\buffer;
            final class Using
            {
                public function use(CommandPool $pool): void
                {
                    new \Predis\Client(gzencode(buffer(\Amp\delay(1))));
                }
            }
            PHP);

        self::assertSame([
            'Spindle\Postgres\Extending: Interface "Psr\Http\Server\RequestHandlerInterface" not found',
            'Postgres uses Psr\Http\Server\RequestHandlerInterface of an unknown package',
            'Postgres uses Spindle\Command\CommandPool of an unknown package',
            'Postgres uses Predis\Client of an unknown package',
            'Postgres uses gzencode of ext-zlib',
            'Postgres uses Amp\ByteStream\buffer of amphp/byte-stream',
        ], $this->problems('Postgres'));
    }

    /** @return iterable<string, array{string, string}> */
    public static function calls(): iterable
    {
        $failures = ['Postgres' => ConnectionFailedException::class, 'Remote' => BrokerUnavailableException::class];
        foreach (Boundaries::CAPABILITIES as $capability) {
            yield $capability => [$capability, $failures[$capability] ?? 'hello'];
        }
    }

    #[DataProvider('calls')]
    public function testACapabilityWorksAlone(string $capability, string $answer): void
    {
        $this->install($capability);

        self::assertSame([$answer], $this->alone('call', $capability));
    }

    public function testEachRequiredPackageIsUsed(): void
    {
        $required = array_filter(
            array_keys(self::composer()['require']),
            static fn(string $package): bool => str_contains($package, '/'),
        );

        self::assertEqualsCanonicalizing($required, array_values(array_unique(array_merge(
            ...array_values(self::PACKAGES),
        ))));
    }

    public function testEachSuggestionSaysWhichCapabilitiesItServes(): void
    {
        foreach (self::composer()['suggest'] as $package => $text) {
            self::assertNotSame([], self::servedBy($text), "{$package}: {$text}");
        }
    }

    private function install(string $capability): void
    {
        $spindle = $this->path(Installation::SPINDLE);
        mkdir("{$spindle}/src", recursive: true);
        $parts = ['composer.json', 'bin'];
        foreach (Text::names(self::ROOT . '/src') as $name) {
            if (str_ends_with($name, '.php') || \in_array($name, self::loaded($capability), true)) {
                $parts[] = "src/{$name}";
            }
        }
        foreach ($parts as $part) {
            (new Process(['cp', '-R', self::ROOT . "/{$part}", "{$spindle}/{$part}"]))->mustRun();
        }
        $packages = array_map(self::requirements(...), self::loaded($capability));
        Installation::complete($this->path(), array_merge(...$packages));
    }

    /** @return list<string> the folder, and those that it may use */
    private static function loaded(string $folder): array
    {
        return array_values(array_unique([$folder, ...(Boundaries::MAY_USE[$folder] ?? []), self::SHARED]));
    }

    /** @return list<string> packages and extensions that the folder may use; of shared code, all extensions */
    private static function requirements(string $folder): array
    {
        $suggested = [];
        foreach (self::composer()['suggest'] as $package => $text) {
            $isForAll = $folder === self::SHARED && str_starts_with($package, 'ext-');
            if ($isForAll || \in_array($folder, self::servedBy($text), true)) {
                $suggested[] = $package;
            }
        }

        return [...self::PACKAGES[$folder], ...$suggested];
    }

    /** @return list<string> the capabilities with which the text of a suggestion begins: "Postgres, Http: ..." */
    private static function servedBy(string $text): array
    {
        $names = explode(', ', explode(': ', $text)[0]);

        return array_diff($names, Boundaries::CAPABILITIES) === [] ? $names : [];
    }

    /** @return list<string> what the folder can't load, uses without requiring it, or requires without using it */
    private function problems(string $folder): array
    {
        $classes = $used = [];
        $source = $this->path(Installation::SPINDLE . "/src/{$folder}");
        foreach (PhpFiles::in($source) as $file) {
            $names = SourceNames::of((string) file_get_contents("{$source}/{$file}"));
            array_push($classes, ...$names->classes);
            array_push($used, ...$names->used);
        }
        self::assertNotSame([], $classes);
        $problems = [];
        foreach ($this->alone('failures', $classes) as $class => $failure) {
            $problems[] = "{$class}: {$failure}";
        }
        $allowed = [...self::requirements($folder), ...self::USUAL_EXTENSIONS];
        $origins = [];
        foreach ($this->alone('definitions', array_values(array_unique($used))) as $name => $definition) {
            $origins[] = $origin = self::origin($name, $definition);
            if ($origin !== null && !\in_array($origin, $allowed, true)) {
                $problems[] = "{$folder} uses {$name} of {$origin}";
            }
        }
        foreach (array_diff(self::PACKAGES[$folder], $origins) as $package) {
            $problems[] = "{$folder} does not use {$package}";
        }

        return $problems;
    }

    /** @return string|null what has to be installed for the name; null if it belongs to the project or to PHP */
    private static function origin(string $name, string $definition): ?string
    {
        if (str_starts_with($definition, 'ext-')) {
            return $definition;
        }
        if ($definition === '' && str_contains($name, '\\')) {
            return self::EXTENSIONS[strstr($name, '\\', true)] ?? 'an unknown package';
        }
        $vendor = realpath(self::ROOT . '/vendor') . '/';

        return str_starts_with($definition, $vendor)
            ? implode('/', \array_slice(explode('/', substr($definition, \strlen($vendor))), 0, 2))
            : null;
    }

    /**
     * @param string|list<string> $argument
     *
     * @return array<string> what the method of Alone returns in a process of the project
     */
    private function alone(string $method, string|array $argument): array
    {
        $script = __DIR__ . '/alone-process.php';
        $argument = json_encode($argument, \JSON_THROW_ON_ERROR);
        $process = new Process([\PHP_BINARY, $script, $this->path(), $method, $argument]);
        self::assertSame(0, $process->run(), $process->getErrorOutput() . $process->getOutput());
        $result = (array) json_decode($process->getOutput(), true, flags: \JSON_THROW_ON_ERROR);

        return array_filter($result, is_string(...));
    }

    /** @return array{require: array<string, string>, suggest: array<string, string>} */
    private static function composer(): array
    {
        /** @var array{require: array<string, string>, suggest: array<string, string>} */
        return json_decode((string) file_get_contents(self::ROOT . '/composer.json'), true);
    }
}
