<?php

declare(strict_types=1);

namespace Aircraft;

use Amp\Cancellation;
use Spindle\Postgres\PostgresLink;
use Spindle\Postgres\Transaction;
use Spindle\Postgres\UniqueViolationException;

/**
 * All operations on aircraft, independent of HTTP.
 *
 * Under `spindle serve`, the process handles other requests while a statement runs. Elsewhere, the process waits.
 */
final readonly class AircraftService
{
    private const ALL = 'number, title, serial_number, assembly_date, added_at';

    public function __construct(private PostgresLink $database, private Announcements $announcements) {}

    /** @throws DuplicateEntityException */
    public function add(Number $number, AircraftData $data, ?Cancellation $cancellation = null): Aircraft
    {
        try {
            $added = $this->database->query(
                'INSERT INTO aircraft (number, title, serial_number, assembly_date) VALUES ($1, $2, $3, $4) RETURNING '
                    . self::ALL,
                [$number, $data->title, $data->serialNumber, $data->assemblyDate],
                $cancellation,
            )->mapTo(Aircraft::class)[0];
        } catch (UniqueViolationException $violation) {
            throw DuplicateEntityException::of($number, $violation);
        }
        $this->announcements->announce(Change::Added, $number);

        return $added;
    }

    /** @throws UnknownAircraftException */
    public function get(Number $number, ?Cancellation $cancellation = null): Aircraft
    {
        return $this->database->query(
            'SELECT ' . self::ALL . ' FROM aircraft WHERE number = $1',
            [$number],
            $cancellation,
        )->mapTo(Aircraft::class)[0]
            ?? throw UnknownAircraftException::of($number);
    }

    /**
     * @param list<string>|null $versions accepted versions, see {@see Aircraft::version()}; null accepts any
     *
     * @throws UnknownAircraftException
     * @throws VersionConflictException
     */
    public function update(
        Number $number,
        AircraftData $data,
        ?array $versions = null,
        ?Cancellation $cancellation = null,
    ): Aircraft {
        $updated = $this->ofVersion(
            $number,
            $versions,
            static fn(PostgresLink $database): ?Aircraft => $database->query(
                'UPDATE aircraft SET title = $2, serial_number = $3, assembly_date = $4 WHERE number = $1 RETURNING '
                    . self::ALL,
                [$number, $data->title, $data->serialNumber, $data->assemblyDate],
                $cancellation,
            )->mapTo(Aircraft::class)[0] ?? null,
            $cancellation,
        ) ?? throw UnknownAircraftException::of($number);
        $this->announcements->announce(Change::Updated, $number);

        return $updated;
    }

    /**
     * @param list<string>|null $versions accepted versions; null accepts any
     *
     * @throws UnknownAircraftException
     * @throws VersionConflictException
     */
    public function delete(Number $number, ?array $versions = null, ?Cancellation $cancellation = null): void
    {
        $deleted = $this->ofVersion(
            $number,
            $versions,
            static fn(PostgresLink $database): int
                => $database->execute('DELETE FROM aircraft WHERE number = $1', [$number], $cancellation),
            $cancellation,
        );
        if ($deleted === 0) {
            throw UnknownAircraftException::of($number);
        }
        $this->announcements->announce(Change::Deleted, $number);
    }

    /**
     * Returns a page in the order of numbers.
     *
     * A page begins after a number, not at an offset. So the last page is as fast as the first. And if aircraft are
     * added or deleted between two pages, no other aircraft is skipped.
     *
     * @param int $size largest number of aircraft
     */
    public function list(?Number $after, int $size, ?Cancellation $cancellation = null): Page
    {
        $found = $this->database->query(
            'SELECT ' . self::ALL . ' FROM aircraft WHERE number > $1 ORDER BY number LIMIT $2',
            [$after ?? '', $size + 1],
            $cancellation,
        )->mapTo(Aircraft::class);

        return new Page(\array_slice($found, 0, $size), \count($found) > $size);
    }

    /**
     * Changes an aircraft only if it has one of these versions. A row lock prevents other changes after the check.
     *
     * @template T
     *
     * @param list<string>|null        $versions
     * @param \Closure(PostgresLink): T $change
     *
     * @return T
     */
    private function ofVersion(Number $number, ?array $versions, \Closure $change, ?Cancellation $cancellation): mixed
    {
        if ($versions === null) {
            return $change($this->database);
        }

        return $this->database->transaction(
            static function (Transaction $transaction) use ($number, $versions, $change, $cancellation): mixed {
                $current = $transaction->query(
                    'SELECT ' . self::ALL . ' FROM aircraft WHERE number = $1 FOR UPDATE',
                    [$number],
                    $cancellation,
                )->mapTo(Aircraft::class)[0]
                    ?? throw UnknownAircraftException::of($number);

                return \in_array($current->version(), $versions, true)
                    ? $change($transaction)
                    : throw VersionConflictException::of($number);
            },
            cancellation: $cancellation,
        );
    }
}
