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
 * Inside the transaction, the commits of all writers would wait for each other.
 */
final class PostgresAnnouncements implements Announcements
{
    /** Changes per notification, which has at most 8,000 bytes. */
    private const TOGETHER = 150;

    /** @var list<Announced> */
    private array $announced = [];

    /**
     * @param float $gather seconds in which changes are collected for one notification, in the background; 0 where the
     *                      process may end with the request
     */
    public function __construct(
        private readonly PostgresLink $database,
        private readonly LoggerInterface $logger,
        private readonly float $gather,
    ) {}

    public function announce(Change $change, Number $number): void
    {
        $this->announced[] = new Announced($change, (string) $number);
        if ($this->gather === 0.0) {
            $this->tell();
        } elseif (\count($this->announced) === 1) {
            EventLoop::delay($this->gather, $this->tell(...));
        }
    }

    private function tell(): void
    {
        $announced = $this->announced;
        $this->announced = [];
        try {
            foreach (array_chunk($announced, self::TOGETHER) as $some) {
                $this->database->execute('SELECT pg_notify($1, $2)', [self::CHANNEL, Announced::payload($some)]);
            }
        } catch (PostgresException $failure) {
            $this->logger->warning('Changes could not be told of', ['exception' => $failure]);
        }
    }
}
