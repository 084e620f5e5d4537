<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Spindle\Bench\Support\Checkout;
use Spindle\Bench\Support\Program;
use Spindle\Bench\Support\Series;

/** Measures a contestant in a fresh process. */
final readonly class TaskProcess
{
    /** Number of bytes shown of output without figures. */
    private const MAX_SHOWN_BYTES = 500;

    public function __construct(private TaskOptions $options) {}

    /** Returns why the contestant is not available; null when it is. */
    public function missing(string $contestant): ?string
    {
        return Python::is($contestant)
            ? Python::missing()
            : TaskContestants::named($contestant, $this->options->pumice)->missing;
    }

    /**
     * @param string $context distinguishes series with the same label
     * @param bool   $closure whether to submit a closure, for measurements with that choice
     * @param Checkout|null $checkout the measured Spindle; null for other contestants
     */
    public function series(
        TaskMeasurement $what,
        string $contestant,
        int $count,
        int $workers,
        string $context,
        string $label = '',
        bool $closure = false,
        ?Checkout $checkout = null,
    ): Series {
        if ($label === '') {
            $label = Python::is($contestant)
                ? Python::label($contestant)
                : TaskContestants::named($contestant, $this->options->pumice)->label;
        }
        $command = Python::is($contestant)
            ? Python::command($contestant, $what, $count, $workers, $this->options->bytes)
            : [
                \PHP_BINARY, ...Program::PHP_OPTIONS,
                \dirname(__DIR__) . '/task-contestant.php', $what->value, $contestant,
                "-n{$count}", "-j{$workers}",
                "--bytes={$this->options->bytes}", "--iterations={$this->options->iterations}",
                ...($this->options->pumice === '' ? [] : ["--pumice={$this->options->pumice}"]),
                ...($closure ? ['--closure'] : []),
            ];

        $command = $checkout === null || $command === [] ? $command : $checkout->command($command);

        return new Series($label, fn(Series $series): float => $this->measure($command, $series), $context, $checkout);
    }

    /** @param list<string> $command */
    private function measure(array $command, Series $series): float
    {
        [$status, $output] = Program::run(['timeout', '-k', '5', (string) $this->options->limit, ...$command]);
        $data = json_decode($output, true);
        $figure = \is_array($data) ? $data['figure'] ?? null : null;
        if ($status !== 0 || !\is_array($data) || (!\is_float($figure) && !\is_int($figure))) {
            throw new \RuntimeException(match ($status) {
                0 => 'it printed no figures: ' . substr($output, 0, self::MAX_SHOWN_BYTES),
                124 => "it has not finished within {$this->options->limit} seconds",
                default => Program::failure($status, $output),
            });
        }
        /** @var array{figure: int|float, results: int, right: bool} $data */
        $series->record($data);
        if (!$data['right']) {
            $series->note("not all results are right: {$data['results']} results");
        }

        return (float) $figure; // a division without remainder gives an int
    }
}
