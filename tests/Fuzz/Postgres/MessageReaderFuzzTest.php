<?php

declare(strict_types=1);

namespace Spindle\Tests\Fuzz\Postgres;

use PHPUnit\Framework\TestCase;
use Spindle\Postgres\Internal\Protocol\MessageReader;
use Spindle\Postgres\ProtocolException;
use Spindle\Tests\Fault\Postgres\Answers;
use Spindle\Tests\Fuzz\Command\Splits;
use Spindle\Tests\Postgres\Message;
use Spindle\Tests\Scale;

/** The same bytes give the same messages in any pieces, with each way of reading. */
final class MessageReaderFuzzTest extends TestCase
{
    public function testAnySplitOfTheBytesGivesTheSameMessages(): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds() as $_) {
            [$bytes, $messages] = self::conversation();
            foreach ([1, 3, 12, 200, 5000, \strlen($bytes) + 1] as $longest) {
                $pieces = Splits::random($bytes, $longest);
                self::assertSame($messages, self::read($pieces, false), "in pieces of up to {$longest} bytes");
                self::assertSame(
                    $messages,
                    self::read($pieces, true),
                    "in pieces of up to {$longest} bytes, answers at once",
                );
            }
        }
    }

    public function testWhatIsNoMessageIsFoundHoweverItArrives(): void
    {
        mt_srand(Scale::seed());
        [$count, $refused] = [0, 0];
        foreach (Scale::rounds(atLeast: 500) as $round) {
            $count = $round;
            $bytes = Mutator::of(self::conversation()[0]);
            $whole = self::read([$bytes], false);
            foreach ([1, 20, 1000] as $longest) {
                $pieces = Splits::random($bytes, $longest);
                self::assertSame($whole, self::read($pieces, false));
                self::assertSame($whole, self::read($pieces, true));
            }
            $refused += ($whole[\count($whole) - 1][0] ?? '') === 'refused' ? 1 : 0;
        }
        self::assertGreaterThan($count / 100, $refused);
    }

    public function testRandomBytesAreReadToTheirEnd(): void
    {
        mt_srand(Scale::seed());
        foreach (Scale::rounds(0.2) as $_) {
            $bytes = Splits::bytes(mt_rand(0, 100));
            $messages = self::read([$bytes], true);
            self::assertLessThanOrEqual(
                \strlen($bytes),
                array_sum(array_map(static fn(array $message): int => \strlen($message[1]), $messages)),
            );
        }
    }

    /** @return array{string, list<array{string, string}>} bytes, and the expected messages */
    private static function conversation(): array
    {
        $bytes = '';
        $messages = [];
        for ($i = mt_rand(1, 6); $i > 0; --$i) {
            if (mt_rand(0, 1) === 0) {
                $rows = Answers::rows(
                    ...array_map(self::row(...), mt_rand(0, 1) === 0 ? [] : array_fill(0, mt_rand(1, 5), 0)),
                );
                $tag = ['SELECT 3', 'INSERT 0 1', '', 'COMMIT'][mt_rand(0, 3)];
                $status = 'ITE'[mt_rand(0, 2)];
                $bytes .= Message::bindComplete()
                    . $rows
                    . Message::commandComplete($tag)
                    . Message::readyForQuery($status);
                array_push(
                    $messages,
                    ['2', ''],
                    ...($rows === '' ? [] : [['D', $rows]]),
                    ...[['C', $rows === '' ? $tag : ''], ['Z', $status]],
                );
            } else {
                $type = '12AEGHIKNSTZcdnst'[mt_rand(0, 16)];
                $payload = Splits::bytes([0, mt_rand(0, 50), mt_rand(0, 3000)][mt_rand(0, 2)]);
                $bytes .= Message::of($type, $payload);
                $messages[] = [$type, $payload];
            }
        }

        return [$bytes, $messages];
    }

    /** @return list<string|null> */
    private static function row(): array
    {
        return [null, Splits::bytes(mt_rand(0, 20)), mt_rand(0, 20) === 0 ? str_repeat('D', 3000) : 'C'];
    }

    /**
     * Returns types and payloads. Consecutive rows may be read in parts, and are joined to one entry.
     *
     * @param list<string> $pieces
     * @param bool         $answers whether the usual answer to a statement is read in one step
     *
     * @return list<array{string, string}>
     */
    private static function read(array $pieces, bool $answers): array
    {
        $reader = new MessageReader();
        $messages = [];
        try {
            foreach ($pieces as $piece) {
                $reader->add($piece);
                while (true) {
                    if ($answers && $reader->nextAnswer()) {
                        $rows = $reader->rowCount > 0 ? [['D', $reader->payload()]] : [];
                        array_push($messages, ['2', ''], ...$rows, ...[['C', $reader->tag], ['Z', $reader->status]]);
                        continue;
                    }
                    $type = $reader->next();
                    if ($type === '') {
                        break;
                    }
                    $last = \count($messages) - 1;
                    $afterRows = ($messages[$last][0] ?? '') === 'D';
                    if ($type === 'D' && $afterRows) {
                        $messages[$last] = ['D', $messages[$last][1] . $reader->payload()];
                    } elseif ($type === 'C') {
                        // After rows the reader does not keep the tag, since it adds no information.
                        $messages[] = [$type, $afterRows ? '' : substr($reader->payload(), 0, -1)];
                    } else {
                        $messages[] = [$type, $reader->payload()];
                    }
                }
            }
        } catch (ProtocolException) {
            // The rows directly before the error may have been read or not.
            if (($messages[\count($messages) - 1][0] ?? '') === 'D') {
                array_pop($messages);
            }
            $messages[] = ['refused', ''];
        }

        return $messages;
    }
}
