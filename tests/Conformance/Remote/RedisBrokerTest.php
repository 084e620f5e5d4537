<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Remote;

use Amp\TimeoutCancellation;
use PHPUnit\Framework\Attributes\After;
use PHPUnit\Framework\Attributes\DataProvider;
use PHPUnit\Framework\Attributes\RequiresPhpExtension;
use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Internal\CannotWaitException;
use Spindle\Remote\AttachResult;
use Spindle\Remote\BrokerRefusedException;
use Spindle\Remote\BrokerUnavailableException;
use Spindle\Remote\Delivery;
use Spindle\Remote\Durability;
use Spindle\Remote\Internal\Redis\Address;
use Spindle\Remote\Internal\Redis\Codec;
use Spindle\Remote\Internal\Redis\EngineClient;
use Spindle\Remote\Job;
use Spindle\Remote\JobStatus;
use Spindle\Remote\MailboxMessage;
use Spindle\Remote\QueueFullException;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\Settlement;
use Spindle\Remote\SettlementKind;
use Spindle\Remote\Testing\TemporaryRedis;
use Spindle\Tests\Async;
use Spindle\Tests\Eventually;
use Spindle\Tests\Postgres\Direction;
use Spindle\Tests\Postgres\FaultyProxy;
use Spindle\Tests\Processes;
use Spindle\Tests\Remote\Redis;
use Spindle\Tests\Remote\UsesRedis;

class RedisBrokerTest extends BrokerContract
{
    use UsesRedis;

    private int $looks = 0;

    /** A separate Redis of one test, instead of the shared one. */
    private ?TemporaryRedis $redis = null;

    /** @param array<string, string> $settings */
    #[DataProvider('unsafeSettings')]
    public function testAnEngineThatWouldLoseJobsIsRefusedWithTheSettingToChange(array $settings, string $advice): void
    {
        $this->redis = $this->start($settings);

        foreach ([$this->broker()->durability(...), fn() => $this->submit('job')] as $use) {
            self::assertStringContainsString($advice, self::thrown(BrokerRefusedException::class, $use)->getMessage());
        }
        self::assertSame(0, $this->redis->command('DBSIZE'));
    }

    /** @return iterable<string, array{array<string, string>, string}> */
    public static function unsafeSettings(): iterable
    {
        yield 'no append-only file' => [['appendonly' => 'no'], 'set "appendonly yes"'];
        yield 'any jobs may be evicted' => [['maxmemory-policy' => 'allkeys-lru'], 'set "maxmemory-policy noeviction"'];
        yield 'outcomes may be evicted' => [
            ['maxmemory-policy' => 'volatile-ttl'],
            'set "maxmemory-policy noeviction"',
        ];
        yield 'the system decides when it writes' => [['appendfsync' => 'no'], 'set "appendfsync everysec"'];
    }

    #[RequiresPhpExtension('FFI')]
    public function testAProgramDoesNotInheritTheConnection(): void
    {
        $before = Processes::inheritedSockets();
        $this->broker()->durability();

        self::assertSame($before, Processes::inheritedSockets());
    }

    public function testTheDurabilityFollowsTheSettings(): void
    {
        self::assertSame(Durability::Fast, $this->broker()->durability());
        $this->redis = $this->start(['appendfsync' => 'always']);

        self::assertSame(Durability::Durable, $this->connect()->durability());
    }

    public function testTheDurabilityIsFastIfTheSettingsCanNotBeRead(): void
    {
        $this->redis = $this->start(['appendfsync' => 'always']);
        $this->redis->command('ACL', 'SETUSER', 'app', 'on', '>secret', '~spindle:*', '&spindle:*', '+@all', '-config');

        self::assertSame(Durability::Fast, $this->asUser('app', 'secret')->durability());
    }

    #[RequiresPhpExtension('pcntl')]
    public function testACallThatCannotWaitForTheConnectionOrTheMailboxHarmsNothingElse(): void
    {
        $broker = $this->connect();
        $durability = Async::run($broker->durability(...));
        $thrown = Async::run(static fn(): ?\Throwable => Async::inSignalHandler($broker->durability(...)));
        $durability->await(new TimeoutCancellation(10.0));
        self::assertInstanceOf(CannotWaitException::class, $thrown->await());
        $close = $broker->openMailbox(
            'client',
            static fn(MailboxMessage $message) => null,
            static fn(bool $mayHaveLostMessages) => null,
        );
        $status = fn(): ?JobStatus => $broker->status($this->queue(), 'job');
        self::assertInstanceOf(CannotWaitException::class, Async::inSignalHandler($status));

        self::assertNull($status());
        $close();
    }

    public function testAMailboxMayHaveLostMessagesFromItsSecondConnectionOn(): void
    {
        $this->redis = $this->start([]);
        $losses = [];
        $close = $this->connect()->openMailbox(
            'client',
            static fn(MailboxMessage $message) => null,
            static function (bool $mayHaveLostMessages) use (&$losses): void {
                $losses[] = $mayHaveLostMessages;
            },
        );
        Eventually::holds(static function () use (&$losses): bool {
            return $losses === [false];
        }, 'the mailbox is open');
        $this->redis->command('CLIENT', 'KILL', 'TYPE', 'pubsub');

        Eventually::holds(static function () use (&$losses): bool {
            return $losses === [false, true];
        }, 'the mailbox is open again');
        $close();
    }

    public function testAnEngineWithoutTheCommandThatLoadsScriptsIsUsedAllTheSame(): void
    {
        $this->redis = $this->start(['rename-command' => 'SCRIPT ""']);
        $broker = $this->connect();

        self::assertSame(Durability::Fast, $broker->durability());
        self::assertSame(0, $broker->statistics($this->queue())['waiting']);
    }

    public function testLargeJobsAreClaimedOneAfterTheOtherAndSmallOnesTogether(): void
    {
        $frame = str_repeat('x', 3 << 20);
        $this->submit(new Job('a', $frame), new Job('b', $frame), 'c', new Job('d', $frame), 'e');
        $owner = $this->join('owner');
        $claims = [];
        while (\count($claims) < 5 && ($claim = $this->claim($owner)) !== []) {
            $claims[] = array_column($claim, 'id');
        }

        self::assertSame([['a', 'c', 'e'], ['b'], ['d']], $claims);
        self::assertSame(0, $this->broker()->repair($this->queue()));
    }

    public function testAJobWhoseRecordCannotBeReadIsClaimedAgainAndHoldsUpNoOther(): void
    {
        $this->submit('a', 'b', 'c', new Job('d', 'frame', delay: 0.05));
        $owner = $this->join('owner');
        [$a, $b] = $this->claim($owner, 2);
        $this->engine('HSET', "spindle:{{$this->queue()}}:running", 'a', 'garbage');
        $this->engine('HSET', "spindle:{{$this->queue()}}:tried", 'd', "\xc1garbage");
        $claim = $this->broker()->settleAndClaim($this->queue(), $owner, [
            new Settlement('a', $a->claimNumber, SettlementKind::Done, frame: 'outcome'),
            new Settlement('b', $b->claimNumber, SettlementKind::Done, frame: 'outcome'),
        ], 2, 60.0);

        self::assertSame(['a'], $claim->stale);
        self::assertSame(['a', 'c'], array_column($claim->deliveries, 'id'));
        self::assertSame('d', $this->claimSoon($owner)->id);
        self::assertSame('outcome', $this->outcome('b'));
    }

    /** The test adds an hour to all times of the queue, which has the same effect as a clock that was set back. */
    public function testLeasesAndDelaysFollowAClockThatIsSetBack(): void
    {
        $this->submit('runs');
        $this->claimOne($this->join('lost'));
        $this->broker()->renewLease($this->queue(), 'lost', self::SHORT, false, '{}');
        $this->submit(new Job('delayed', 'frame', delay: 0.3));
        $owner = $this->join('owner');
        $this->setClockBack(['lost', 'owner'], ['delayed']);
        $claimed = [];
        Eventually::holds(function () use ($owner, &$claimed): bool {
            $due = $this->broker()->renewLease($this->queue(), $owner, self::LONG, false, '{}');
            self::assertLessThan(1.0, $due ?? 0.0);
            array_push($claimed, ...self::ids($this->claim($owner)));

            return \count($claimed) === 2;
        }, 'both are claimed');
        sort($claimed);

        self::assertSame(['delayed', 'runs'], $claimed);
        self::assertLessThan((microtime(true) + self::LONG + 1.0) * 1000, $this->score('agents', $owner));
    }

    /** If older times were corrected after a new delay was stored, the new delay would be changed as well. */
    #[TestWith([null, 50.0, 50.0])]
    #[TestWith([SettlementKind::Retry, 50.0, 50.0])]
    #[TestWith([SettlementKind::Refused, 0.0, 0.2])]
    public function testANewDelayKeepsItsLengthAfterTheClockIsSetBack(
        ?SettlementKind $kind,
        float $delay,
        float $stored,
    ): void {
        $this->submit('job');
        $owner = $this->join('owner');
        $this->join('other');
        $claimed = $this->claimOne($owner);
        $this->submit(new Job('old', 'frame', delay: 100.0));
        $this->setClockBack(['owner', 'other'], ['old']);
        $before = floor(microtime(true) * 1000);
        if ($kind === null) {
            $this->submit(new Job('new', 'frame', delay: $delay));
        } else {
            $settlement = new Settlement('job', $claimed->claimNumber, $kind, delay: $delay);
            $this->broker()->settleAndClaim($this->queue(), $owner, [$settlement], 1, 60.0);
        }
        $due = $this->score('delayed', $kind === null ? 'new' : 'job');
        self::assertGreaterThanOrEqual($before + $stored * 1000, $due);
        $old = $this->score('delayed', 'old');
        self::assertGreaterThan($before + 90_000, $old);
        self::assertLessThan($before + 101_000, $old);
        $this->broker()->renewLease($this->queue(), 'other', self::LONG, false, '{}');

        self::assertSame($old, $this->score('delayed', 'old'));
    }

    /**
     * Adds an hour to the times of the queue.
     *
     * @param list<string> $owners
     * @param list<string> $delayed ids of delayed jobs
     */
    private function setClockBack(array $owners, array $delayed): void
    {
        $prefix = "spindle:{{$this->queue()}}:";
        foreach (['agents' => $owners, 'delayed' => $delayed] as $key => $members) {
            foreach ($members as $member) {
                $this->shared()->command('ZINCRBY', "{$prefix}{$key}", '3600000', $member);
            }
        }
        $this->shared()->command('HINCRBY', "{$prefix}meta", 'heard', '3600000');
    }

    private function score(string $key, string $member): float
    {
        $score = $this->shared()->command('ZSCORE', "spindle:{{$this->queue()}}:{$key}", $member);
        self::assertIsString($score);

        return (float) $score;
    }

    public function testAWrongPasswordIsRefusedWithThePlaceForTheRightOne(): void
    {
        $port = $this->shared()->port;
        foreach ([
            "redis://:wrong@127.0.0.1:{$port}",
            "redis://nobody:wrong@127.0.0.1:{$port}",
            "redis://127.0.0.1:{$port}",
        ] as $address) {
            $failure = self::thrown(BrokerRefusedException::class, (new RedisBroker($address))->durability(...));
            self::assertStringContainsString(
                'put the user and the password into the address',
                $failure->getMessage(),
            );
            self::assertStringNotContainsString(':wrong@', $failure->getMessage());
        }
    }

    public function testAnEngineThatHasTooManyClientsIsNotAvailableUntilOneLeaves(): void
    {
        $this->redis = $this->start(['maxclients' => '1']);
        $this->redis->command('ACL', 'SETUSER', 'app', 'on', '>secret', '~spindle:*', '&spindle:*', '+@all');
        $this->redis->command('ACL', 'SETUSER', 'default', 'nopass');
        $holder = $this->asUser('app', 'secret');
        $holder->durability();
        $brokers = [$this->asUser('app', 'secret'), new RedisBroker("redis://127.0.0.1:{$this->redis->port}")];
        foreach ($brokers as $broker) {
            $failure = self::thrown(BrokerUnavailableException::class, $broker->durability(...));
            self::assertMatchesRegularExpression('/max number of clients|the connection/', $failure->getMessage());
        }
        unset($holder);
        gc_collect_cycles();
        Eventually::holds(static function () use ($brokers): bool {
            try {
                return $brokers[0]->durability() === Durability::Fast;
            } catch (BrokerUnavailableException) {
                return false; // the engine has not noticed that the other client is gone
            }
        }, 'it is let in');
    }

    /** @param list<string> $rules */
    #[DataProvider('lackingRules')]
    public function testAUserWithoutAPermissionIsRefusedWithItsName(array $rules, string $lacking): void
    {
        $user = 'app-' . bin2hex(random_bytes(4));
        $this->shared()->command('ACL', 'SETUSER', $user, 'on', '>secret', ...$rules);
        $broker = $this->asUser($user, 'secret');
        $failure = self::thrown(BrokerRefusedException::class, function () use ($broker): void {
            $broker->submit($this->queue(), [new Job('job', 'frame')], 10, 'client', false);
            $broker->renewLease($this->queue(), 'a', self::LONG, true, '{}');
            $broker->settleAndClaim($this->queue(), 'a', [], 1, 60.0);
        });
        $this->shared()->command('ACL', 'DELUSER', $user);

        self::assertStringContainsStringIgnoringCase($lacking, $failure->getMessage());
        self::assertStringContainsString('docs/reference/remote.md lists all commands, keys', $failure->getMessage());
    }

    /** @return iterable<string, array{list<string>, string}> */
    public static function lackingRules(): iterable
    {
        yield 'no scripts' => [['~spindle:*', '&spindle:*', '+@all', '-evalsha'], 'evalsha'];
        yield 'no streams' => [['~spindle:*', '&spindle:*', '+@all', '-xreadgroup'], 'command'];
        yield 'no info' => [['~spindle:*', '&spindle:*', '+@all', '-info'], 'info'];
        yield 'no keys' => [['~other:*', '&spindle:*', '+@all'], 'key'];
    }

    public function testScriptsThatTheEngineHasDroppedAreSentAgain(): void
    {
        $this->submit('one', 'two');
        $this->shared()->command('SCRIPT', 'FLUSH');
        $deliveries = $this->claim($this->join('a'));
        $this->shared()->command('SCRIPT', 'FLUSH');
        $this->end('a', $deliveries[0]);
        $this->shared()->command('SCRIPT', 'FLUSH');

        self::assertSame('outcome', $this->outcome('one'));
        self::assertNull($this->outcome('two'));
    }

    public function testOneJobOfANewProcessNeedsFewBytesAndRoundTrips(): void
    {
        $this->submit('before'); // the engine knows the script
        $proxy = new FaultyProxy("tcp://127.0.0.1:{$this->shared()->port}");
        $broker = new RedisBroker("redis://:{$this->shared()->password}@127.0.0.1:{$proxy->port}");
        $before = $this->commands();
        $broker->submit($this->queue(), [new Job('job', str_repeat('x', 300))], 10, 'client', true);
        $commands = $this->commands() - $before;
        $bytes = [$proxy->passed(Direction::ToServer), $proxy->passed(Direction::ToClient)];
        $proxy->stop();

        self::assertLessThanOrEqual(4096, array_sum($bytes), implode(' + ', $bytes));
        self::assertSame(4, $commands, 'the password, which engine it is, how it is set, and the script');
    }

    /** Returns the number of commands that clients have sent to the engine, this one included. */
    private function commands(): int
    {
        $info = $this->shared()->command('INFO', 'commandstats');
        preg_match_all(
            '/^cmdstat_(?:auth|info|config\|get|evalsha|eval|script\|load):calls=(\d+)/m',
            \is_string($info) ? $info : '',
            $calls,
        );

        return (int) array_sum($calls[1]) - 2 * $this->looks++;
    }

    /** @param list<'urgent'|'ready'> $streams */
    #[DataProvider('operatorsDoings')]
    public function testEntriesThatAnOperatorHasDeletedAreRepaired(string $doing, array $streams): void
    {
        $this->submit('urgent', 'runs', 'done', ...array_map(static fn(int $i): string => "new-{$i}", range(1, 700)));
        [$urgent, $runs, $done] = $this->claim($this->join('a'), 3);
        $this->giveBack('a', $urgent);
        $this->end('a', $done);
        $this->submit(new Job('delayed', 'frame', delay: 60.0));
        foreach ($streams as $stream) {
            $doing === 'XTRIM'
                ? $this->engine('XTRIM', $stream, 'MAXLEN', '0')
                : $this->engine('DEL', $stream);
        }
        $lost = (\in_array('urgent', $streams, true) ? 1 : 0) + (\in_array('ready', $streams, true) ? 700 : 0);

        self::assertSame($lost, $this->broker()->repair($this->queue()));
        self::assertSame(0, $this->broker()->repair($this->queue()));
        self::assertSame($lost, $this->statistic('repaired_total'));
        $this->end('a', $runs);
        $claimed = self::ids($this->claim('a', 2000));
        self::assertCount(701, array_unique($claimed));
        self::assertCount(701, $claimed);
        self::assertSame([0, 1], $this->statistics('waiting', 'delayed'));
    }

    /** @return iterable<string, array{string, list<'urgent'|'ready'>}> */
    public static function operatorsDoings(): iterable
    {
        yield 'one is trimmed' => ['XTRIM', ['ready']];
        yield 'the other is trimmed' => ['XTRIM', ['urgent']];
        yield 'both are trimmed' => ['XTRIM', ['urgent', 'ready']];
        yield 'one is deleted' => ['DEL', ['ready']];
        yield 'both are deleted' => ['DEL', ['urgent', 'ready']];
    }

    public function testRecordsThatAnOperatorHasDeletedAreMadeAnewAndBrokenOnesAreShown(): void
    {
        $this->submit(
            new Job('holds', 'frame', 'key'),
            new Job('blocked', 'frame', 'key'),
            new Job('delayed', 'frame', delay: 60.0),
            'runs',
            'dead',
        );
        $byId = array_column($this->claim($this->join('a')), null, 'id');
        $this->end('a', $byId['dead'], SettlementKind::Dead);
        foreach (['tried', 'meta'] as $name) {
            $this->shared()->command('DEL', "spindle:{{$this->queue()}}:{$name}");
        }

        self::assertGreaterThan(0, $this->broker()->repair($this->queue()), 'what is missing is noticed at once');
        self::assertSame(0, $this->broker()->repair($this->queue()));
        self::assertSame([], $this->claim('a'), 'the key is held');
        $this->end('a', $byId['holds']);
        self::assertSame('blocked', $this->claimOne('a')->id);

        $prefix = "spindle:{{$this->queue()}}:";
        $this->shared()->command('HSET', "{$prefix}running", 'runs', "\xc1broken");
        $this->shared()->command('HSET', "{$prefix}reason", 'dead', '{broken');
        self::assertStringContainsString(
            'cannot be read',
            (string) $this->broker()->listJobs($this->queue(), JobStatus::Running, 10)['runs']['reason'],
        );
        self::assertStringContainsString(
            'cannot be read',
            (string) $this->broker()->listJobs($this->queue(), JobStatus::Dead, 10)['dead']['reason'],
        );
    }

    public function testRunningJobsStayWithTheirOwnerAfterItsConsumerWasDeleted(): void
    {
        $this->submit('one', 'two');
        [$one, $two] = $this->claim($this->join('a'));
        $this->engine('XGROUP', 'DELCONSUMER', 'ready', 'agents', 'a');

        self::assertSame(0, $this->broker()->repair($this->queue()));
        self::assertSame([], $this->claim($this->join('b')));
        $this->end('a', $one);
        $this->giveBack('a', $two);
        self::assertSame('two', $this->claimOne('b')->id);
    }

    /** @param list<string> $doing */
    #[DataProvider('losses')]
    public function testJobsOfALostOwnerAreFoundAfterAnOperatorsChange(array $doing, bool $repairedBefore): void
    {
        $this->submit('one', 'two', new Job('keyed', 'frame', 'key'), new Job('blocked', 'frame', 'key'));
        self::assertCount(3, $this->claim($this->join('a')));
        $this->broker()->renewLease($this->queue(), 'a', self::SHORT, false, '{}');
        $this->engine(...$doing);
        if ($repairedBefore) {
            self::assertSame(0, $this->broker()->repair($this->queue()));
            self::assertSame(0, $this->broker()->repair($this->queue()));
        }
        $this->join('b');
        $claimed = [];
        Eventually::holds(function () use (&$claimed): bool {
            $this->broker()->renewLease($this->queue(), 'b', self::LONG, false, '{}');
            $this->broker()->repair($this->queue());
            foreach ($this->claim('b') as $delivery) {
                $claimed[$delivery->id] = [$delivery->crashes, $delivery->lost];
                $this->end('b', $delivery);
            }

            return \count($claimed) === 4;
        }, 'all are found');
        ksort($claimed);

        self::assertSame(
            ['blocked' => [0, false], 'keyed' => [1, true], 'one' => [1, true], 'two' => [1, true]],
            $claimed,
        );
        self::assertSame([0, 0, 0], $this->statistics('running', 'waiting', 'blocked'));
    }

    /** @return iterable<string, array{list<string>, bool}> */
    public static function losses(): iterable
    {
        foreach ([false, true] as $repairedBefore) {
            $when = $repairedBefore ? ', and it was repaired before' : '';
            yield "its consumer is deleted{$when}" => [
                ['XGROUP', 'DELCONSUMER', 'ready', 'agents', 'a'],
                $repairedBefore,
            ];
            yield "the group is deleted{$when}" => [['XGROUP', 'DESTROY', 'ready', 'agents'], $repairedBefore];
            yield "the stream is trimmed{$when}" => [['XTRIM', 'ready', 'MAXLEN', '0'], $repairedBefore];
            yield "the stream is deleted{$when}" => [['DEL', 'ready'], $repairedBefore];
        }
    }

    #[DataProvider('keys')]
    public function testNoJobIsLostWhenAnOperatorDeletesAKey(string $key, bool $isFoundAtOnce): void
    {
        $this->submit('retried', 'one', 'two', new Job('keyed', 'frame', 'key'), new Job('blocked', 'frame', 'key'));
        $this->submit(new Job('delayed', 'frame', delay: 60.0));
        $this->giveBack($this->join('a'), $this->claim('a', 1)[0], SettlementKind::Retry, 0, 1);
        self::assertCount(4, $this->claim('a'));
        $this->submit('waits');
        $this->shared()->command('DEL', "spindle:{{$this->queue()}}:{$key}");
        $claimed = [];
        Eventually::holds(function () use (&$claimed, $isFoundAtOnce): bool {
            if (!$isFoundAtOnce) {
                $this->shared()->command('HSET', "spindle:{{$this->queue()}}:meta", 'audited', '0'); // an hour is over
            }
            $due = "spindle:{{$this->queue()}}:delayed";
            $this->shared()->command('ZADD', $due, 'XX', '0', 'delayed'); // the delay is over
            $this->broker()->repair($this->queue());
            foreach ($this->listed(JobStatus::Running) as $id) {
                $claimed[$id] = true;
            }
            $this->broker()->releaseLease($this->queue(), 'a');
            $this->broker()->renewLease($this->queue(), 'b', self::LONG, true, '{}');
            foreach ($this->claim('b') as $delivery) {
                $claimed[$delivery->id] = true;
                $this->end('b', $delivery);
            }

            return \count($claimed) === 7;
        }, 'all are found');
    }

    /** @return iterable<string, array{string, bool}> */
    public static function keys(): iterable
    {
        foreach (['running', 'delayed', 'agents', 'about', 'idle', 'ready', 'urgent', 'meta'] as $key) {
            yield $key => [$key, true];
        }
        yield 'tried' => ['tried', false];
        yield 'keys' => ['keys', false];
        yield 'a line of a key' => ['blocked:key', false];
    }

    /**
     * A broken network may delay a submission until the same job was submitted again, has run, and its outcome was
     * dropped.
     */
    public function testASubmissionThatArrivesAfterItsRetryIsNotAdded(): void
    {
        $engine = new EngineClient(Address::parse($this->shared()->url()), null, 5.0);
        $submit = fn(int $connection): string => $engine->run(
            'submit',
            $this->queue(),
            Codec::encodeJobs([new Job('job', 'frame')]),
            '1',
            '1000',
            'client',
            '0',
            (string) $connection,
        );
        self::assertSame('1', $submit(2));
        $this->end($this->join('a'), $this->claimOne('a'));
        $this->broker()->dropOutcomes($this->queue(), ['job']);

        self::assertSame('late', $submit(1));
        self::assertSame([], $this->claim('a'));
        self::assertSame(1, $this->statistic('submitted_total'));
    }

    /** claimedJobs() runs often, and many jobs may be cancelled. */
    public function testALookAtTheFiguresPassesNoMoreThanSomeEntriesOfJobsThatAreGone(): void
    {
        $ids = array_map(static fn(int $i): string => "job-{$i}", range(1, 900));
        for ($round = 1; $round <= 3; ++$round) {
            $this->submit(...$ids);
            $this->broker()->cancel($this->queue(), $ids);
        }

        self::assertSame([0, 0], $this->statistics('waiting', 'oldest_ms'));
        $left = $this->shared()->command('XLEN', "spindle:{{$this->queue()}}:ready");
        self::assertGreaterThan(1000, $left);
        self::assertLessThan(2700, $left);
    }

    public function testAClaimHasNoMoreBytesThanAnAnswerMayHave(): void
    {
        $received = $this->post('a');
        $this->submit(
            ...array_map(static fn(int $i): Job => new Job("job-{$i}", str_repeat('x', 200_000)), range(1, 60)),
        );
        $claimed = \count($this->claim($this->join('a'), 100));

        self::assertSame(20, $claimed);
        Eventually::holds(static fn(): bool => $received->jobsAvailable > 0, 'it is told to come again');
        self::assertCount(60 - $claimed, [...$this->claim('a', 100), ...$this->claim('a', 100)]);
    }

    public function testALookHasNoMoreBytesThanAnAnswerMayHave(): void
    {
        $this->submit('one', 'two', 'three');
        foreach ($this->claim($this->join('a')) as $delivery) {
            $this->end('a', $delivery, frame: str_repeat('x', 3 << 20));
        }

        self::assertCount(
            1,
            array_filter(
                $this->broker()->attach($this->queue(), ['one', 'two', 'three'], 'client'),
                static fn(AttachResult $state): bool => $state->outcome !== null,
            ),
        );
    }

    public function testAClaimHasNoMoreBytesAlsoWhenTheFirstJobsAreSmall(): void
    {
        $this->submit(
            ...array_map(
                static fn(int $i): Job => new Job("job-{$i}", str_repeat('x', $i < 17 ? 100 : 1 << 20)),
                range(1, 40),
            ),
        );

        self::assertCount(19, $this->claim($this->join('a'), 100));
    }

    /** A slow script would keep agents from renewing their leases. */
    public function testAStepOfAnAuditHasNoMoreBytesThanAnAnswerMayHave(): void
    {
        $this->submit(
            ...array_map(static fn(int $i): Job => new Job("job-{$i}", str_repeat('x', 300_000)), range(1, 200)),
        );
        $this->shared()->command('HSET', "spindle:{{$this->queue()}}:meta", 'audited', '0');
        $engine = new EngineClient(Address::parse($this->shared()->url()), null, 5.0);
        $steps = 0;
        [$step, $cursor] = ['check', ''];
        for (; $step !== 'ok'; ++$steps) {
            [, $step, $cursor] = [
                ...explode(' ', $engine->run('repair', $this->queue(), $step, $cursor, 'auditor'), 3),
                '',
            ];
        }

        self::assertGreaterThan(10, $steps);
        self::assertSame(200, $this->statistic('waiting'));
    }

    public function testBlockedJobsAreCountedAnewAfterTheCountersWereDeleted(): void
    {
        $this->submit(...array_map(static fn(int $i): Job => new Job("job-{$i}", 'frame', 'key'), range(1, 5)));
        $first = $this->claimOne($this->join('a'));
        self::assertSame(4, $this->statistic('blocked'));
        $this->shared()->command('DEL', "spindle:{{$this->queue()}}:meta");
        $this->broker()->repair($this->queue());
        self::assertSame(4, $this->statistic('blocked'));
        $this->end('a', $first);
        for ($i = 0; $i < 4; ++$i) {
            $this->end('a', $this->claimOne('a'));
        }

        self::assertSame([0, 0], $this->statistics('blocked', 'waiting'));
    }

    public function testJobsThatAreBlockedDuringAnAuditAreCounted(): void
    {
        $this->submit(new Job('one', 'frame', 'key'), new Job('two', 'frame', 'key'));
        $this->end($this->join('a'), $this->claimOne('a'), SettlementKind::Dead);
        $this->end('a', $this->claimOne('a'), SettlementKind::Dead);
        $this->broker()->retryDeadLetters($this->queue(), ['one', 'two']);
        $this->audit(function (string $cursor): void {
            if ($cursor === 'r -') {
                self::assertCount(1, $this->claim('a'), 'the audit has found the entries of both jobs');
            }
        });

        self::assertSame(1, $this->statistic('blocked'));
    }

    public function testJobsThatAreBlockedAndUnblockedDuringAnAuditAreCounted(): void
    {
        $job = static fn(int $i): Job => new Job("job-{$i}", str_repeat('x', 100), 'key');
        $this->submit(...array_map($job, range(1, 200)));
        $this->join('a');
        $running = $this->claim('a', 200);
        $last = 200;
        $this->audit(function () use ($job, &$running, &$last): void {
            for ($i = 0; $i < 5; ++$i) {
                $this->end('a', $running[0]);
                $this->submit($job(++$last));
                $running = $this->claim('a', 2);
                self::assertCount(1, $running);
            }
        });

        self::assertGreaterThan(220, $last);
        self::assertSame(199, $this->statistic('blocked'));
    }

    /** @param \Closure(string): void $onStep called after each step, with the cursor of the next one */
    private function audit(\Closure $onStep): void
    {
        $this->shared()->command('HSET', "spindle:{{$this->queue()}}:meta", 'audited', '0');
        $engine = new EngineClient(Address::parse($this->shared()->url()), null, 5.0);
        for ([$step, $cursor] = ['check', '']; $step !== 'ok';) {
            $answer = $engine->run('repair', $this->queue(), $step, $cursor, 'auditor');
            [$repaired, $step, $cursor] = [...explode(' ', $answer, 3), ''];
            self::assertSame('0', $repaired);
            $onStep($cursor);
        }
    }

    /** An auditor that was paused for too long must not repair anything. */
    public function testAnAuditorThatWasReplacedAddsNoEntry(): void
    {
        $this->submit('one', 'two', 'three');
        $engine = new EngineClient(Address::parse($this->shared()->url()), null, 5.0);

        self::assertSame('0 ok', $engine->run('repair', $this->queue(), 'jobs', '0', 'one of before'));
        self::assertSame(0, $this->statistic('repaired_total'));
        self::assertSame(3, $this->shared()->command('XLEN', "spindle:{{$this->queue()}}:ready"));
        self::assertSame(0, $this->shared()->command('XLEN', "spindle:{{$this->queue()}}:urgent"));
    }

    public function testJobsThatAreFoundStillHaveTheirKey(): void
    {
        $this->submit(new Job('one', 'frame', 'key'), new Job('two', 'frame', 'key'), new Job('three', 'frame', 'key'));
        $delivery = $this->claim($this->join('a'), 1)[0];
        $this->engine('DEL', 'ready');

        self::assertSame(2, $this->broker()->repair($this->queue()));
        self::assertSame([], $this->claim('a'));
        $this->end('a', $delivery);
        $second = $this->claimOne('a');
        $this->end('a', $second);
        self::assertSame(['one', 'three', 'two'], self::sorted($delivery->id, $second->id, $this->claimOne('a')->id));
    }

    public function testABlockedJobIsNotRepaired(): void
    {
        $this->submit(new Job('one', 'frame', 'key'), new Job('two', 'frame', 'key'), 'other');
        $delivery = $this->claim($this->join('a'), 2)[0];
        $this->submit('lost');
        $this->engine('XTRIM', 'ready', 'MAXLEN', '0');

        self::assertSame(1, $this->broker()->repair($this->queue()));
        self::assertSame(1, $this->statistic('blocked'));
        $this->end('a', $delivery);
        self::assertSame(['lost', 'two'], self::sorted(...self::ids($this->claim('a'))));
    }

    public function testJobsThatAreBlockedWhileTheNextJobWithTheirKeyWaitsAreNotRepaired(): void
    {
        $this->submit(...array_map(static fn(int $i): Job => new Job("job-{$i}", 'frame', 'key'), range(1, 5)));
        $this->end($this->join('a'), $this->claimOne('a'));
        self::assertSame([1, 3], $this->statistics('waiting', 'blocked'));
        $this->shared()->command('HSET', "spindle:{{$this->queue()}}:meta", 'audited', '0'); // an hour is over

        self::assertSame(0, $this->broker()->repair($this->queue()));
        self::assertSame([1, 3], $this->statistics('waiting', 'blocked'));
        for ($i = 2; $i <= 5; ++$i) {
            $delivery = $this->claimOne('a');
            self::assertSame("job-{$i}", $delivery->id);
            $this->end('a', $delivery);
        }
    }

    public function testAQueueThatIsEmptyLeavesNothingButItsFigures(): void
    {
        $this->join('a');
        $this->submit(
            'done',
            'dead',
            'revived',
            'retried',
            'cancelled',
            new Job('keyed', 'frame', 'key'),
            new Job('next', 'frame', 'key'),
            new Job('unwanted', 'frame', 'key'),
            new Job('delayed', 'frame', delay: 60.0),
        );
        $this->broker()->attach(
            $this->queue(),
            ['done', 'dead', 'revived', 'retried', 'cancelled', 'keyed', 'next', 'unwanted', 'delayed'],
            'other',
        );
        $this->broker()->cancel($this->queue(), ['cancelled', 'delayed']);
        for ($round = 0; $round < 3; ++$round) {
            foreach ($this->claim('a') as $delivery) {
                match ($delivery->claimNumber === 1 ? $delivery->id : '') {
                    'dead', 'revived', 'keyed' => $this->end('a', $delivery, SettlementKind::Dead),
                    'retried' => $this->giveBack('a', $delivery, SettlementKind::Retry, 0, 1),
                    default => $this->end('a', $delivery),
                };
            }
            $this->broker()->cancel($this->queue(), ['unwanted']);
            if ($round === 0) {
                $this->broker()->retryDeadLetters($this->queue(), ['revived', 'keyed']);
            }
        }
        $this->broker()->deleteDeadLetters($this->queue(), $this->listed(JobStatus::Dead));
        $this->broker()->releaseLease($this->queue(), 'a');
        $this->broker()->renewLease($this->queue(), 'b', self::LONG, true, '{}');

        self::assertSame([], $this->left());
        self::assertSame([0, 0], $this->statistics('waiting', 'blocked'));
    }

    /** Only the process with the mailbox "client" knows the id "client-1". */
    public function testTheOutcomeAndItemsOfACancelledJobExpireEarlyIfOnlyItsCallerKnowsTheId(): void
    {
        foreach (['client-1' => 60, 'chosen' => 3600] as $id => $seconds) {
            $this->submit($id);
            $this->storeItem($this->claimOne($this->join('a')));
            $this->broker()->cancel($this->queue(), [$id]);
            $this->settleFor(3600.0, $id, SettlementKind::Cancelled);

            self::assertEqualsWithDelta([$seconds, $seconds], $this->secondsLeft($id), 50.0);
        }
    }

    public function testTheRecordOfACancellationExpires(): void
    {
        $this->submit('waits', 'runs');
        [$delivery] = $this->claim($this->join('a'), 1);
        $this->broker()->cancelAndRecord($this->queue(), ['waits', 'runs']);
        $this->end('a', $delivery, SettlementKind::Cancelled);
        foreach (['waits' => 600, 'runs' => 3600] as $id => $seconds) {
            $key = "spindle:{{$this->queue()}}:cancelled:{$id}";
            $left = $this->shared()->command('TTL', $key);
            self::assertEqualsWithDelta($seconds, $left, 5.0);
            $this->shared()->command('DEL', $key, "spindle:{{$this->queue()}}:result:{$id}");
            self::assertNull($this->broker()->status($this->queue(), $id));
        }
    }

    public function testTheSubmitterOfACancelledJobGetsAMessageIfOnlyItKnowsTheId(): void
    {
        $mailbox = bin2hex(random_bytes(9));
        $received = $this->post($mailbox);
        foreach (["{$mailbox}-1", "{$mailbox}-2"] as $i => $id) {
            $job = new Job($id, 'frame', $i === 0 ? '' : 'key');
            $this->broker()->submit($this->queue(), [$job], 10, $mailbox, false);
        }
        $this->broker()->cancelAndRecord($this->queue(), ["{$mailbox}-1", "{$mailbox}-2"]);

        Eventually::holds(static fn(): bool => \count($received->outcomes) === 2, 'there are messages');
    }

    public function testTheRecordOfACancellationIsObsoleteWhenAnOlderClientHasAddedTheJobAgain(): void
    {
        $this->submit('job');
        $this->broker()->cancelAndRecord($this->queue(), ['job']);
        $this->submit('job'); // without a check of the record, as an older version does
        self::assertSame(JobStatus::Waiting, $this->broker()->status($this->queue(), 'job'));
        $this->end($this->join('a'), $this->claimOne('a'));

        self::assertSame(JobStatus::Done, $this->broker()->status($this->queue(), 'job'));
        self::assertSame('outcome', $this->outcome('job'));
    }

    public function testTheItemsOfAnEndedJobExpireEarlyAfterACancellationIfOnlyItsCallerKnowsTheId(): void
    {
        foreach (['client-1' => 60, 'chosen' => 3600, bin2hex(random_bytes(12)) . '-' => 3600] as $id => $seconds) {
            $this->submit($id);
            $this->storeItem($this->claimOne($this->join('a')));
            $this->settleFor(3600.0, $id, SettlementKind::Done);
            self::assertSame([], $this->broker()->cancel($this->queue(), [$id]));

            self::assertSame('outcome', $this->outcome($id));
            self::assertEqualsWithDelta([3600, $seconds], $this->secondsLeft($id), 50.0);
        }
    }

    public function testItemsThatAreNotTakenAreDroppedIfOnlyTheCallerKnowsTheId(): void
    {
        $random = bin2hex(random_bytes(12)) . '-';
        foreach (['client-1' => [], 'chosen' => ['item'], $random => ['item']] as $id => $left) {
            foreach ([false, true] as $isEnded) {
                $this->submit($id);
                $this->storeItem($this->claimOne($this->join('a')));
                if ($isEnded) {
                    $this->settleFor(3600.0, $id, SettlementKind::Done);
                }
                $this->broker()->stopTakingItems($this->queue(), $id);
                self::assertSame($left, $this->broker()->takeItems($this->queue(), $id, 0, 10));
                if (!$isEnded) {
                    $this->settleFor(3600.0, $id, SettlementKind::Done);
                }
                $this->broker()->dropOutcomes($this->queue(), [$id]);
                $this->engine('DEL', "spindle:{{$this->queue()}}:items:{$id}");
            }
        }
    }

    public function testTheStreamOfAnEndedJobIsDroppedWhenAllItemsWereTaken(): void
    {
        $this->submit('job');
        $this->storeItem($this->claimOne($this->join('a')));
        self::assertSame([], $this->broker()->takeItems($this->queue(), 'job', 1, 10));
        self::assertNotSame(-2, $this->secondsLeft('job')[1], 'While the job runs, its stream stays');
        $this->settleFor(3600.0, 'job', SettlementKind::Done);
        self::assertSame([], $this->broker()->takeItems($this->queue(), 'job', 1, 10));

        self::assertSame(-2, $this->secondsLeft('job')[1]);
    }

    private function storeItem(Delivery $delivery): void
    {
        $number = $delivery->claimNumber;
        self::assertSame(
            1,
            $this->broker()->putItems($this->queue(), 'a', $delivery->id, $number, 0, ['item']),
        );
    }

    private function settleFor(float $retention, string $id, SettlementKind $kind): void
    {
        $settlements = [new Settlement($id, 1, $kind, frame: 'outcome')];
        $this->broker()->settleAndClaim($this->queue(), 'a', $settlements, 0, $retention);
    }

    /** @return list<mixed> seconds until the outcome and the items of a job expire; -2 if there are none */
    private function secondsLeft(string $id): array
    {
        return array_map(
            fn(string $kind): mixed => $this->shared()->command('TTL', "spindle:{{$this->queue()}}:{$kind}:{$id}"),
            ['result', 'items'],
        );
    }

    public function testAnEngineWithoutMemoryAcceptsNoJobsButSettlesThem(): void
    {
        $this->redis = $this->start();
        $this->join('a');
        $info = $this->redis->command('INFO', 'memory');
        self::assertSame(1, preg_match('/^used_memory:(\d+)/m', \is_string($info) ? $info : '', $used));
        $this->submit(
            ...array_map(static fn(int $i): Job => new Job("job-{$i}", str_repeat('x', 10_000)), range(1, 500)),
        );
        $this->redis->command('CONFIG', 'SET', 'maxmemory', (string) ((int) $used[1] + 3_000_000));

        self::assertStringContainsString(
            'memory',
            self::thrown(QueueFullException::class, fn() => $this->submit('another'))->getMessage(),
        );
        $this->broker()->renewLease($this->queue(), 'a', self::LONG, false, '{}');
        $deliveries = [...$this->claim('a', 500), ...$this->claim('a', 500)];
        self::assertCount(500, $deliveries);
        self::thrown(
            BrokerUnavailableException::class,
            fn() => $this->broker()->putItems($this->queue(), 'a', 'job-1', 1, 0, ['item']),
        );
        $this->giveBack('a', $deliveries[0], SettlementKind::Retry, 0, 1);
        foreach (\array_slice($deliveries, 1) as $delivery) {
            $this->end('a', $delivery);
        }
        Eventually::holds(function (): bool {
            try {
                return $this->broker()->submit(
                    $this->queue(),
                    [new Job('another', 'frame')],
                    1000,
                    'client',
                    false,
                )->accepted === 1;
            } catch (QueueFullException) {
                return false; // the engine keeps buffers for a while
            }
        }, 'it takes jobs in again');
        self::assertSame(['job-1', 'another'], self::ids($this->claim('a')));
    }

    public function testAServerThatIsKilledLosesNothingThatItHasConfirmed(): void
    {
        $this->redis = $this->start(['appendfsync' => 'always']);
        $received = $this->post();
        $this->submit(...array_map(static fn(int $i): string => "job-{$i}", range(1, 100)));
        $this->submit(new Job('delayed', 'frame', delay: 60.0), new Job('keyed', 'frame', 'key'));
        $deliveries = $this->claim($this->join('a'), 10);
        foreach (\array_slice($deliveries, 0, 3) as $delivery) {
            $this->end('a', $delivery);
        }
        $this->end('a', $deliveries[3], SettlementKind::Dead);
        $before = array_diff_key($this->broker()->statistics($this->queue()), ['oldest_ms' => 0]);
        $this->redis->kill();

        self::thrown(BrokerUnavailableException::class, fn() => $this->statistic('running'));
        $this->redis->restart();
        Eventually::holds(function (): bool {
            try {
                return $this->broker()->durability() === Durability::Durable;
            } catch (BrokerUnavailableException) {
                return false;
            }
        }, 'it is reached again');
        self::assertSame($before, array_diff_key($this->broker()->statistics($this->queue()), ['oldest_ms' => 0]));
        self::assertSame(['outcome', null], [$this->outcome('job-1'), $this->outcome('job-5')]);
        self::assertCount(6, $this->broker()->claimedJobs($this->queue(), 'a', []));
        Eventually::holds(function () use ($received): bool {
            $this->broker()->report($this->queue(), 'a', 'job-5', 1, 'report');

            return $received->reports !== [];
        }, 'the mailbox is open again');
        $this->end('a', $deliveries[4]);
        self::assertCount(91, $this->claim('a', 200));
        self::assertSame(0, $this->broker()->repair($this->queue()));
    }

    protected function shared(): TemporaryRedis
    {
        return Redis::shared();
    }

    /** @param array<string, string> $settings */
    protected function start(array $settings = []): TemporaryRedis
    {
        return TemporaryRedis::start($settings);
    }

    protected function connect(): RedisBroker
    {
        return new RedisBroker(($this->redis ?? $this->shared())->url());
    }

    #[After(-1)]
    protected function stopOwnRedis(): void
    {
        $this->redis?->stop();
        $this->redis = null;
    }

    private function asUser(string $user, string $password): RedisBroker
    {
        return new RedisBroker("redis://{$user}:{$password}@127.0.0.1:" . ($this->redis ?? $this->shared())->port);
    }

    /** @return list<string> keys of this test's queue that hold jobs, or parts of them */
    private function left(): array
    {
        $keys = $this->shared()->command('KEYS', "spindle:{{$this->queue()}}:*");
        $left = [];
        foreach (\is_array($keys) ? $keys : [] as $key) {
            $name = \is_string($key) ? substr($key, \strlen("spindle:{{$this->queue()}}:")) : '';
            if (
                preg_match('/^((?:result|task):.*|meta|agents|about)$/D', $name) !== 1
                && !(
                    \in_array($name, ['urgent', 'ready'], true)
                    && $this->shared()->command('XLEN', "spindle:{{$this->queue()}}:{$name}") === 0
                )
            ) {
                $left[] = $name;
            }
        }

        return $left;
    }

    /** Changes a stream of this test's queue, as an operator might. */
    private function engine(string ...$words): void
    {
        $this->shared()->command(
            ...array_map(
                fn(string $word): string
                    => \in_array($word, ['urgent', 'ready'], true) ? "spindle:{{$this->queue()}}:{$word}" : $word,
                array_values($words),
            ),
        );
    }

    /** @return list<string> */
    private static function sorted(string ...$ids): array
    {
        sort($ids);

        return $ids;
    }
}
