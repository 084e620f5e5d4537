<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use PHPUnit\Framework\TestCase;
use Spindle\Tests\Fork\ProgramResult;
use Spindle\Tests\Postgres\UsesCluster;
use Spindle\Tests\Remote\UsesRedis;
use Spindle\Tests\Streams;
use Symfony\Component\Process\Process;

/**
 * Runs the code blocks of pages.
 *
 * A PHP block that uses PostgreSQL finds a new database in its environment. The file schema.sql of the page, if there
 * is one, is executed in it first. A block that runs in a folder of the project gets a database too. A PHP block that
 * uses remote tasks finds a broker, a key, and an agent of the queue "thumbnails".
 */
abstract class CodeBlocksTestCase extends TestCase
{
    use UsesCluster;
    use UsesRedis;

    /** File of a page that is executed in the database of each block of the page. */
    private const SCHEMA = 'schema.sql';

    /** In a command that prints how long a request took. */
    private const TIME = '%{time_total}';

    protected Workplace $workplace;

    /** @var array<string, string> unused addresses by those that pages name; the same for all blocks of a test */
    private array $freeAddresses = [];

    /** Workplace of the agent that all blocks share. */
    private static ?Workplace $agents = null;

    public static function tearDownAfterClass(): void
    {
        self::$agents?->remove();
        self::$agents = null;
    }

    protected function setUp(): void
    {
        $this->workplace = new Workplace();
    }

    protected function tearDown(): void
    {
        $this->workplace->remove();
    }

    /** @return iterable<string, array{CodeBlock, list<CodeBlock>, CodeBlock|null}> */
    public static function blocks(): iterable
    {
        foreach (self::allBlocks() as $name => $arguments) {
            if (!self::isTimed($arguments[0])) {
                yield $name => $arguments;
            }
        }
    }

    final protected static function isTimed(CodeBlock $block): bool
    {
        $commands = implode("\n", array_column($block->commands(), 0));

        return $block->skipped === null && str_contains($commands, self::TIME);
    }

    /** @return iterable<string, array{CodeBlock, list<CodeBlock>, CodeBlock|null}> */
    final protected static function allBlocks(): iterable
    {
        foreach (self::pages() as $page) {
            $blocks = self::blocksOf($page);
            $files = array_values(array_filter($blocks, static fn(CodeBlock $block): bool => $block->file !== null));
            foreach ($blocks as $block) {
                if ($block->isCode()) {
                    yield "{$page}:{$block->line}" => [$block, $files, CodeBlock::serverOf($blocks)];
                }
            }
        }
    }

    /** @return list<CodeBlock> */
    final protected static function blocksOf(string $page): array
    {
        return CodeBlock::allIn((string) file_get_contents(Workplace::project() . "/{$page}"));
    }

    /** @param list<CodeBlock> $files */
    final protected function assertDoesWhatThePageSays(CodeBlock $block, array $files, ?CodeBlock $server): void
    {
        foreach ($files as $file) {
            $this->workplace->put((string) $file->file, $file->content);
        }

        match ($block->language) {
            'php' => $this->runPhp($block, $files),
            'console' => $this->runConsole($block, $server),
            default => self::fail(
                "A block of \"{$block->language}\" is not run: make it php or console, or one of "
                    . implode(', ', CodeBlock::NOT_CODE),
            ),
        };
    }

    /** @param list<CodeBlock> $files */
    private function runPhp(CodeBlock $block, array $files): void
    {
        $opening = match (true) {
            str_starts_with($block->content, '<?php') => '',
            str_contains($block->content, 'declare(') => '<?php ',
            default => '<?php declare(strict_types=1); ',
        };
        $file = $this->workplace->put('block.php', $opening . $block->content);
        if ($block->skipped !== null) {
            self::assertExit(0, $this->workplace->lint($file));

            return;
        }

        if (preg_match('~Spindle.(?:Doctrine|Postgres)~', $block->content) === 1) {
            $this->workplace->useDatabase(implode('', array_map(
                static fn(CodeBlock $file): string => $file->file === self::SCHEMA ? $file->content : '',
                $files,
            )));
        }
        if (str_contains($block->content, 'Spindle\Remote')) {
            $this->workplace->useBrokerOf(self::agents());
        }
        $process = $block->serves === null
            ? $this->workplace->script($file)
            : $this->workplace->server($file, $block->serves);
        self::assertExit($block->exitStatus, $process);
        $printed = $block->printed();
        if ($printed !== null) {
            ExpectedOutput::assertMatches($printed, $process->getOutput(), 'Output of the block');
        }
        self::assertDoesNotMatchRegularExpression(
            '/^(PHP )?(Warning|Notice|Deprecated): /m',
            $process->getErrorOutput(),
        );
    }

    private static function agents(): Workplace
    {
        if (self::$agents === null) {
            self::$agents = new Workplace();
            self::$agents->useBroker('thumbnails');
        }

        return self::$agents;
    }

    private function runConsole(CodeBlock $block, ?CodeBlock $server): void
    {
        $commands = $block->commands();
        self::assertNotSame([], $commands, 'A console block shows at least one line that begins with "$ "');
        if ($block->skipped !== null) {
            return;
        }

        if ($block->folder !== null) {
            $this->workplace->enter($block->folder);
            $this->workplace->useDatabase('');
        }
        $free = $this->freeAddress($block->isServed ? $server : $block);
        $serving = $block->isServed
            ? $this->beginServing($server ?? self::fail('Nothing on the page has "serves"'), $free)
            : null;
        try {
            $this->runCommands($block, $free);
        } finally {
            $serving?->signal(\SIGINT);
            $serving?->wait();
        }
    }

    /** @param array<string, string> $free */
    private function beginServing(CodeBlock $server, array $free): Process
    {
        $commands = array_column($server->commands(), 0);
        foreach (\array_slice($commands, 0, -1) as $command) {
            self::assertExit(0, $this->workplace->shell(strtr($command, $free)));
        }

        return $this->workplace->serving(strtr((string) end($commands), $free), strtr((string) $server->serves, $free));
    }

    /** @return array<string, string> replacements for strtr(): the address in the block may be in use here */
    private function freeAddress(?CodeBlock $server): array
    {
        if ($server === null || $server->serves === null) {
            return [];
        }
        $address = explode('/', $server->serves)[0];
        $this->freeAddresses[$address] ??= Streams::unusedAddress();

        return [$address => $this->freeAddresses[$address]];
    }

    /** @param array<string, string> $free */
    private function runCommands(CodeBlock $block, array $free): void
    {
        $commands = $block->commands();
        if ($block->stays) {
            [$lasting] = array_pop($commands) ?? self::fail('Nothing in the block stays');
            $this->workplace->keepRunning(strtr($lasting, $free));
        }
        foreach ($commands as $number => [$command, $expected]) {
            $serves = $number === \count($commands) - 1 && $block->serves !== null
                ? strtr($block->serves, $free)
                : null;
            $process = $this->workplace->shell(strtr($command, $free), $serves);
            self::assertExit($number === \count($commands) - 1 ? $block->exitStatus : 0, $process);
            if ($expected !== '') {
                ExpectedOutput::assertMatches(strtr($expected, $free), $process->getOutput(), "Output of: {$command}");
            }
        }
    }

    private static function assertExit(int $expected, Process|ProgramResult $process): void
    {
        $command = $process instanceof Process ? "{$process->getCommandLine()}\n" : '';
        $message = "{$command}{$process->getOutput()}{$process->getErrorOutput()}";
        self::assertSame($expected, $process->getExitCode(), $message);
    }

    /** @param string $page path relative to the project's folder */
    abstract protected static function isItsPage(string $page): bool;

    /** @return list<string> paths relative to the project's folder */
    final protected static function pages(): array
    {
        $pages = ['README.md', 'examples/aircraft/README.md', 'integrations/doctrine-dbal/README.md'];
        $docs = Workplace::project() . '/docs';
        if (is_dir($docs)) {
            foreach (new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($docs)) as $file) {
                \assert($file instanceof \SplFileInfo);
                if ($file->getExtension() === 'md') {
                    $pages[] = substr($file->getPathname(), \strlen(Workplace::project()) + 1);
                }
            }
        }
        sort($pages);

        return array_values(array_filter($pages, static::isItsPage(...)));
    }
}
