<?php

declare(strict_types=1);

namespace Aircraft;

use Psr\Log\LoggerInterface;
use Revolt\EventLoop;
use Spindle\Postgres\PostgresException;
use Spindle\Postgres\PostgresLink;

/**
 * Announces changes by NOTIFY, after the change.
 *
 * If NOTIFY was a part of the transaction, the commits of all writers would wait for each other.
 */
final class PostgresAnnouncements implements Announcements
{
    /** Changes per notification, which has at most 8,000 bytes. */
    private const MAX_CHANGES = 150;

    /** @var list<AnnouncedChange> */
    private array $announced = [];

    /**
     * @param float $delay seconds in which changes are collected for one notification, in the background; 0 where the
     *                      process may end with the request
     */
    public function __construct(
        private readonly PostgresLink $database,
        private readonly LoggerInterface $logger,
        private readonly float $delay,
    ) {}

    public function announce(Change $change, Number $number): void
    {
        $this->announced[] = new AnnouncedChange($change, (string) $number);
        if ($this->delay === 0.0) {
            $this->notify();
        } elseif (\count($this->announced) === 1) {
            EventLoop::delay($this->delay, $this->notify(...));
        }
    }

    private function notify(): void
    {
        $announced = $this->announced;
        $this->announced = [];
        try {
            foreach (array_chunk($announced, self::MAX_CHANGES) as $chunk) {
                $this->database->execute('SELECT pg_notify($1, $2)', [self::CHANNEL, AnnouncedChange::payload($chunk)]);
            }
        } catch (PostgresException $failure) {
            $this->logger->warning('Changes could not be announced', ['exception' => $failure]);
        }
    }
}
