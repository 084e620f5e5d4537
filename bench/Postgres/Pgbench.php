<?php

declare(strict_types=1);

namespace Spindle\Bench\Postgres;

use Spindle\Bench\Support\Program;

/** PostgreSQL's own benchmark program, in C: the same prepared statements from one thread. It checks no results. */
final readonly class Pgbench
{
    /** Number of statements per pipeline, to show the server's limit. */
    public const PIPELINE = 16;

    /** Parameters without an option, and their environment variables. */
    private const VARIABLES = ['password' => 'PGPASSWORD', 'sslmode' => 'PGSSLMODE', 'sslrootcert' => 'PGSSLROOTCERT'];

    public function __construct(private Target $target, private int $connections, private bool $pipeline) {}

    public static function missing(): ?string
    {
        return self::program() === null ? 'pgbench is not on PATH' : null;
    }

    /**
     * @return array{rate: float, count: int, right: bool} runs per second of all statements, and the number of runs
     *
     * @throws \RuntimeException when it fails
     */
    public function run(Load $load, int $count): array
    {
        $times = $this->pipeline ? self::PIPELINE : 1;
        $result = $this->runScript($this->script($load, $times), max(1, intdiv($count, $this->connections * $times)));

        return ['rate' => $times * $result['rate'], 'count' => $times * $result['count'], 'right' => $result['right']];
    }

    /**
     * @param string                $script       a transaction in pgbench's language
     * @param int                   $transactions number per connection
     * @param array<string, string> $variables    variables of the script
     *
     * @return array{rate: float, count: int, right: bool} transactions per second, and their number
     *
     * @throws \RuntimeException when it fails
     */
    public function runScript(string $script, int $transactions, array $variables = []): array
    {
        $file = (string) tempnam(sys_get_temp_dir(), 'spindle-pgbench-');
        file_put_contents($file, $script);
        foreach (array_intersect_key($this->target->parameters, self::VARIABLES) as $name => $value) {
            putenv(self::VARIABLES[$name] . "={$value}");
        }
        try {
            [$status, $output] = Program::run($this->command($file, $transactions, $variables));
        } finally {
            unlink($file);
        }
        if ($status !== 0 || preg_match('/^tps = ([\d.]+) \(without/m', $output, $rate) !== 1) {
            throw new \RuntimeException("pgbench ended with {$status}: {$output}");
        }

        return [
            'rate' => (float) $rate[1],
            'count' => $transactions * $this->connections,
            'right' => preg_match('~^number of transactions actually processed: (\d+)/\1$~m', $output) === 1,
        ];
    }

    /**
     * @param array<string, string> $variables
     *
     * @return list<string>
     */
    private function command(string $script, int $transactions, array $variables): array
    {
        ['host' => $host, 'port' => $port, 'user' => $user, 'dbname' => $database] = $this->target->parameters;

        return [
            (string) self::program(), '-n', '-M', 'prepared',
            '-c', (string) $this->connections, '-j', '1', '-t', (string) $transactions,
            ...array_map(
                static fn(string $name, string $value): string => "-D{$name}={$value}",
                array_keys($variables),
                $variables,
            ),
            '-f', $script, '-h', $host, '-p', $port, '-U', $user, $database,
        ];
    }

    private function script(Load $load, int $times): string
    {
        $ids = $statements = '';
        for ($i = 0; $i < $times; ++$i) {
            $ids .= \sprintf("\\set id%d random(1, %d)\n", $i, Tables::ITEMS);
            foreach ($load->steps as $step) {
                $statements .= str_replace('$1', ":id{$i}", $step->sql) . ";\n";
            }
        }

        return match (true) {
            $load->isTransaction => "{$ids}BEGIN;\n{$statements}COMMIT;\n",
            $this->pipeline => "{$ids}\\startpipeline\n{$statements}\\endpipeline\n",
            default => $ids . $statements,
        };
    }

    /**
     * Returns the program itself: Debian's command on PATH is a Perl script that searches it, which would cost time.
     */
    private static function program(): ?string
    {
        $programs = array_filter((array) glob('/usr/lib/postgresql/*/bin/pgbench'), is_string(...));
        natsort($programs);

        return array_values(array_reverse($programs))[0] ?? Program::find('pgbench');
    }
}
