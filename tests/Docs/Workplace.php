<?php

declare(strict_types=1);

namespace Spindle\Tests\Docs;

use Spindle\Tests\Eventually;
use Spindle\Tests\Fork\ForkServer;
use Spindle\Tests\Fork\ProgramResult;
use Spindle\Tests\Postgres\Cluster;
use Spindle\Tests\Remote\AgentProgram;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Text;
use Symfony\Component\Process\Process;

/** Temporary folder in which docs and examples run as in a project that has Spindle installed. */
final class Workplace
{
    private const DEADLINE = 60.0;

    public readonly string $folder;

    /** Working directory of commands. */
    private string $here;

    /** @var array<string, string> environment variables that name the database and the broker */
    private array $database = [];

    /** @var list<Process> processes that run until the folder is removed */
    private array $lasting = [];

    public function __construct()
    {
        $this->folder = $this->here = sys_get_temp_dir() . '/spindle-docs-' . bin2hex(random_bytes(6));
        mkdir($this->folder);
        $this->install();
    }

    public static function project(): string
    {
        return \dirname(__DIR__, 2);
    }

    public function put(string $name, string $content): string
    {
        $path = "{$this->folder}/{$name}";
        is_dir(\dirname($path)) || mkdir(\dirname($path), recursive: true);
        file_put_contents($path, $content);

        return $path;
    }

    /**
     * Creates a database and names it in the environment, for clients of PostgreSQL.
     *
     * @param string $script SQL to execute in the database first
     */
    public function useDatabase(string $script): void
    {
        $cluster = Cluster::shared();
        $name = Cluster::newDatabase();
        if ($script !== '') {
            Cluster::ask($script, $cluster->dsn(dbname: $name));
        }
        $this->database = [
            'PGHOST' => $cluster->host,
            'PGPORT' => (string) $cluster->port,
            'PGUSER' => $cluster->user,
            'PGDATABASE' => $name,
        ];
    }

    /** Names an engine and a key in the environment. */
    public function useEngine(?string $address = null): void
    {
        $key = $this->put('spindle.key', AgentProgram::KEY);
        chmod($key, 0600);
        $this->database += ['SPINDLE_BROKER' => $address ?? Redis::shared()->url(), 'SPINDLE_KEY_FILE' => $key];
    }

    /** Names an engine in the environment, and starts an agent for the queue. */
    public function useBroker(string $queue): void
    {
        $this->useEngine();
        $this->keepRunning("vendor/bin/spindle work --queue {$queue} --workers 2 --quiet");
    }

    /** Names the broker of another workplace in the environment. The agent of that workplace serves the queue. */
    public function useBrokerOf(self $other): void
    {
        $this->database += $other->database;
    }

    /** Makes a folder of the project the working directory of later commands. */
    public function enter(string $folder): void
    {
        $this->here = self::project() . "/{$folder}";
    }

    /** Runs a shell command. Standard error is part of the output, as in a terminal. */
    public function shell(string $line, ?string $serves = null): Process
    {
        return $this->run(['sh', '-c', "exec 2>&1\n" . ($serves === null ? '' : 'exec ') . $line], $serves);
    }

    /** Runs a PHP file with the autoloader, and with all errors shown. */
    public function php(string $file, string ...$arguments): Process
    {
        return $this->run($this->phpCommand($file, ...$arguments));
    }

    /** Runs a PHP file like php(), but where possible in a fork of a PHP process that has loaded most classes. */
    public function script(string $file): ProgramResult
    {
        return ForkServer::isAvailable()
            ? ForkServer::run($file, [], $this->here, $this->environment())
            : ProgramResult::of($this->php($file));
    }

    /** Starts a command that runs until the folder is removed. */
    public function keepRunning(string $line): Process
    {
        // Tests may run as root, which an agent otherwise refuses.
        $line = str_replace('spindle work ', 'spindle work --allow-root ', $line);
        $process = $this->process(['sh', '-c', "exec {$line}"])->setTimeout(null);
        $process->start();
        $this->lasting[] = $process;

        return $process;
    }

    /** Starts a command that serves `$url` until it is interrupted. */
    public function serving(string $line, string $url): Process
    {
        $process = $this->process(['sh', '-c', "exec 2>&1\nexec {$line}"]);
        $process->start();
        self::awaitAnswer($process, $url);

        return $process;
    }

    /** @param string $url address and path that the file serves until it is interrupted */
    public function server(string $file, string $url): Process
    {
        return $this->run($this->phpCommand($file), $url);
    }

    public function lint(string $file): Process
    {
        return $this->run([PHP_BINARY, '-l', $file]);
    }

    /** @return list<string> */
    private function phpCommand(string $file, string ...$arguments): array
    {
        return [
            PHP_BINARY,
            '-d', 'error_reporting=-1',
            '-d', 'display_errors=stderr',
            '-d', 'log_errors=0',
            '-d', 'html_errors=0',
            '-d', 'zend.assertions=1',
            '-d', 'auto_prepend_file=' . self::project() . '/vendor/autoload.php',
            $file,
            ...array_values($arguments),
        ];
    }

    /** @param list<string> $command */
    private function run(array $command, ?string $serves = null): Process
    {
        $process = $this->process($command);
        if ($serves === null) {
            $process->run();

            return $process;
        }
        $process->start();
        self::awaitAnswer($process, $serves);
        $process->signal(\SIGINT);
        $process->wait();

        return $process;
    }

    /** @param list<string> $command */
    private function process(array $command): Process
    {
        return new Process($command, $this->here, $this->environment(), timeout: self::DEADLINE);
    }

    /** @return array<string, string> */
    private function environment(): array
    {
        return [
            'PATH' => self::project() . '/bin:' . \dirname(PHP_BINARY) . ':' . getenv('PATH'),
            'NO_COLOR' => '1',
            'COLUMNS' => '80',
            ...$this->database,
        ];
    }

    private static function awaitAnswer(Process $process, string $url): void
    {
        Eventually::holdsByItself(
            static fn(): bool => !$process->isRunning() || @file_get_contents("http://{$url}") !== false,
            "{$url} is served",
            20,
        );
    }

    /** Links the packages of this checkout, `vendor/bin/spindle` and `vendor/bin/phpunit`. */
    private function install(): void
    {
        $vendor = "{$this->folder}/vendor";
        mkdir("{$vendor}/bin", recursive: true);
        symlink(self::project() . '/bin/spindle', "{$vendor}/bin/spindle");
        symlink(self::project() . '/vendor/bin/phpunit', "{$vendor}/bin/phpunit");
        foreach (array_diff(Text::names(self::project() . '/vendor'), ['bin']) as $name) {
            symlink(self::project() . "/vendor/{$name}", "{$vendor}/{$name}");
        }
    }

    public function remove(): void
    {
        foreach (array_reverse($this->lasting) as $process) {
            $process->stop(self::DEADLINE);
        }
        (new Process(['rm', '-rf', $this->folder]))->mustRun();
    }
}
