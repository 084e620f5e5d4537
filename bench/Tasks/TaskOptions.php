<?php

declare(strict_types=1);

namespace Spindle\Bench\Tasks;

use Spindle\Bench\Support\Entrants;
use Spindle\Bench\Support\Options;
use Spindle\Bench\Support\UsageException;
use Spindle\Worker\WorkerContext;

/** The options of bench/tasks.php. */
final readonly class TaskOptions
{
    private const PEERS = ['amp', 'python', 'pumice'];

    /**
     * @param non-empty-list<TaskMeasurement> $only
     * @param int|null                        $count      tasks; null for each measurement's default
     * @param non-empty-list<int>             $workers    workers of the bulk tasks
     * @param non-empty-list<WorkerContext>   $contexts   contexts of Spindle's pools
     * @param list<string>                    $peers
     * @param int                             $bytes      size of an echoed string
     * @param int                             $iterations iterations of a CPU-bound task
     * @param string                          $pumice     folder of Pumice's source; '' for none
     * @param int                             $limit      time limit of a measurement, in seconds
     */
    private function __construct(
        public array $only,
        public ?int $count,
        public array $workers,
        public int $rounds,
        public array $contexts,
        public array $peers,
        public int $bytes,
        public int $iterations,
        public string $pumice,
        public int $limit,
        public Entrants $entrants,
    ) {}

    /** @throws UsageException when a value is not allowed */
    public static function of(Options $options): self
    {
        $contexts = array_column(WorkerContext::cases(), null, 'name');
        $pumice = $options->text('pumice');
        if ($pumice !== '' && PumiceTasks::missing($pumice) !== null) {
            throw new UsageException('option --pumice: ' . PumiceTasks::missing($pumice));
        }

        return new self(
            array_map(
                TaskMeasurement::from(...),
                $options->names('only', array_column(TaskMeasurement::cases(), 'value')),
            ),
            $options->has('n') ? $options->int('n') : null,
            $options->ints('workers', 1),
            $options->int('rounds'),
            array_map(
                static fn(string $name): WorkerContext => $contexts[ucfirst($name)],
                $options->names('contexts', array_map(strtolower(...), array_keys($contexts))),
            ),
            $options->text('peers') === 'none' ? [] : $options->names('peers', self::PEERS),
            $options->int('bytes'),
            $options->int('iterations'),
            $pumice,
            $options->int('limit'),
            Entrants::of($options),
        );
    }

    /** @return array<string, mixed> raw data */
    public function toArray(): array
    {
        return [
            'only' => array_column($this->only, 'value'),
            'n' => $this->count,
            'workers' => $this->workers,
            'rounds' => $this->rounds,
            'contexts' => array_column($this->contexts, 'name'),
            'peers' => $this->peers,
            'bytes' => $this->bytes,
            'iterations' => $this->iterations,
            'pumice' => $this->pumice,
            'limit' => $this->limit,
        ];
    }
}
