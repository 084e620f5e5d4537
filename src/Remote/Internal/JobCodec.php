<?php

declare(strict_types=1);

namespace Spindle\Remote\Internal;

use Spindle\Internal\ReportDelivery;
use Spindle\Remote\InvalidSignatureException;
use Spindle\Remote\Job;
use Spindle\Remote\JobLostException;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\PayloadTooLargeException;
use Spindle\Remote\RemoteOptions;
use Spindle\Remote\SigningKeys;
use Spindle\Worker\PortableOutcome;

/** Encodes and signs the jobs of one queue. Verifies and decodes their outcomes, items and reports. */
final class JobCodec
{
    public function __construct(
        private readonly string $queue,
        private readonly SigningKeys $keys,
        private readonly JobRetryPolicy $retryPolicy,
        private readonly RemoteOptions $options,
    ) {}

    public function head(string $code): string
    {
        return JobBody::head($this->retryPolicy, $this->options->timeout, $code);
    }

    /**
     * @param mixed $inputKey key of the task's input in a map() call, for the error message
     *
     * @throws PayloadTooLargeException
     */
    public function encodeJob(
        string $id,
        #[\SensitiveParameter]
        string $body,
        string $exclusiveKey = '',
        float $delay = 0.0,
        mixed $inputKey = null,
    ): Job {
        if (\strlen($body) > $this->options->maxPayloadBytes) {
            throw PayloadTooLargeException::of(\strlen($body), $this->options->maxPayloadBytes, $inputKey);
        }

        return new Job($id, $this->keys->seal(FrameKind::Job, $this->queue, $id, 0, $body), $exclusiveKey, $delay);
    }

    /**
     * @param int   $index number of the expected item, starting at 0
     * @param mixed $key   key of the task's input in a map() call
     *
     * @return array{mixed, mixed} key and item
     *
     * @throws InvalidSignatureException
     * @throws JobLostException         when the frame belongs to a later item
     * @throws \Spindle\Worker\TaskFailedException
     */
    public function item(string $id, string $frame, int $index, mixed $key): array
    {
        $body = $this->keys->open(FrameKind::Item, $this->queue, $id, $frame);
        /** @var array{1: int} $at */
        $at = unpack('V', $body);
        if ($at[1] > $index) {
            throw JobLostException::items($id, $this->queue, $index, $at[1]);
        }
        if ($at[1] < $index) {
            throw InvalidSignatureException::of($id, "it belongs to an item before item {$index}", FrameKind::Item);
        }

        return PortableOutcome::item(substr($body, 4), 1, $key);
    }

    /** Passes a task's report to the caller's closure. Drops a frame with a wrong signature or from another queue. */
    public function deliverReport(string $id, string $frame): void
    {
        $onReport = $this->options->onReport;
        if ($onReport === null) {
            return;
        }
        try {
            $report = $this->keys->open(FrameKind::Report, $this->queue, $id, $frame);
        } catch (InvalidSignatureException) {
            return;
        }
        ReportDelivery::deliver(static fn(): mixed => PortableOutcome::report($report), $onReport);
    }

    /** @throws InvalidSignatureException */
    public function outcome(string $id, string $frame): string
    {
        return $this->keys->open(FrameKind::Outcome, $this->queue, $id, $frame);
    }

    /**
     * Verifies and decodes the outcome of a generator task, and returns the generator's return value.
     *
     * @param int $taken number of items that were taken
     *
     * @throws InvalidSignatureException|JobLostException|\Spindle\Worker\TaskException
     * @throws \Spindle\Worker\UnserializableException
     */
    public function generatorReturn(string $id, string $frame, mixed $key, int $taken): mixed
    {
        $outcome = $this->outcome($id, $frame);
        $items = OutcomeBody::itemCount($outcome) ?? 0;

        return $taken < $items
            ? throw JobLostException::items($id, $this->queue, $taken, $items)
            : OutcomeBody::read($outcome, $key, $id, $this->queue);
    }
}
