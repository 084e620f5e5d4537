<?php

declare(strict_types=1);

namespace Spindle\Tests\Cli;

final class JsonLinesTest extends SpindleCommandTestCase
{
    public function testTasksGoInAndResultsComeOutAsJsonLines(): void
    {
        $process = $this->spindle(['-k', '--jsonl'], <<<'JSON'
            {"id":"task_1","cmd":"echo 1"}
            {"id":2,"cmd":"echo 2 | cat; echo e >&2; exit 3"}
            {"id":3,"cmd":"kill -9 $$"}
            {"id":4,"cmd":"printf '\\377\\000'"}
            {"id":"/w==","cmd":"ZWNobyD/","base64":["id","cmd"]}
            JSON);

        self::assertOutcome(2, <<<'JSON'
            {"id":"task_1","status":0,"stdout":"1\n","stderr":""}
            {"id":2,"status":3,"stdout":"2\n","stderr":"e\n"}
            {"id":3,"status":137,"stdout":"","stderr":""}
            {"id":4,"status":0,"stdout":"/wA=","stderr":"","base64":["stdout"]}
            {"id":"/w==","status":0,"stdout":"/wo=","stderr":"","base64":["id","stdout"]}

            JSON, $process);
    }

    public function testALineThatIsNoTaskIsAFailedJobAndStopsNoOther(): void
    {
        $process = $this->spindle(
            ['-k', '--jsonl'],
            "{\"id\":1,\"cmd\":\"true\"}\necho 2\n{\n{\"id\":4,\"cmd\":\"true\"}\n{\"id\":5}\n",
        );

        self::assertOutcome(
            3,
            "{\"id\":1,\"status\":0,\"stdout\":\"\",\"stderr\":\"\"}\n"
            . "{\"id\":4,\"status\":0,\"stdout\":\"\",\"stderr\":\"\"}\n",
            $process,
            "spindle: input line 2: not JSON: Syntax error\nspindle: input line 3: not JSON: Syntax error\n"
            . "spindle: input line 5: \"cmd\" is missing\n",
        );
    }

    public function testAnIdThatNoResultCouldHaveStopsNoOther(): void
    {
        $process = $this->spindle(
            ['-k', '--jsonl'],
            "{\"id\":1,\"cmd\":\"echo a\"}\n{\"id\":1e999,\"cmd\":\"touch ran\"}\n{\"id\":3,\"cmd\":\"echo c\"}\n",
        );

        self::assertOutcome(
            1,
            "{\"id\":1,\"status\":0,\"stdout\":\"a\\n\",\"stderr\":\"\"}\n"
            . "{\"id\":3,\"status\":0,\"stdout\":\"c\\n\",\"stderr\":\"\"}\n",
            $process,
            "spindle: input line 2: \"id\" is a number that is too large; give a string\n",
        );
        self::assertFileDoesNotExist($this->path('ran'));
    }

    public function testALineThatIsNoTaskEndsTheRunOnDemand(): void
    {
        $process = $this->spindle(
            ['--jsonl', '--strict'],
            "{\"id\":1,\"cmd\":\"echo 1\"}\nx\n{\"id\":3,\"cmd\":\"touch ran\"}\n",
        );

        self::assertOutcome(
            255,
            "{\"id\":1,\"status\":0,\"stdout\":\"1\\n\",\"stderr\":\"\"}\n",
            $process,
            "spindle: input line 2: not JSON: Syntax error\n",
        );
        self::assertFileDoesNotExist($this->path('ran'));
    }

    public function testALineThatIsNoTaskCountsForAHalt(): void
    {
        $process = $this->spindle(['-j1', '--jsonl', '--halt', 'soon,fail=1'], "x\n{\"id\":2,\"cmd\":\"touch ran\"}\n");

        self::assertSame([1, ''], [$process->getExitCode(), $process->getOutput()]);
        self::assertFileDoesNotExist($this->path('ran'));
    }

    public function testATimeoutIsNeverAStatusOfZero(): void
    {
        $process = $this->spindle(['-k', '--jsonl', '--timeout', '0.2'], <<<'JSON'
            {"id":1,"cmd":"sleep 60"}
            {"id":2,"cmd":"trap 'exit 0' TERM; sleep 60 & wait"}
            JSON);

        self::assertSame(2, $process->getExitCode());
        self::assertSame(
            "{\"id\":1,\"status\":143,\"stdout\":\"\",\"stderr\":\"\"}\n"
            . "{\"id\":2,\"status\":124,\"stdout\":\"\",\"stderr\":\"\"}\n",
            $process->getOutput(),
        );
        self::assertSame(2, substr_count($process->getErrorOutput(), ': timed out (0.2 s) after'));
    }

    public function testAResumedRunGoesByTheNumberOfTheLine(): void
    {
        $input = "{\"id\":\"a\",\"cmd\":\"echo 1\"}\nx\n{\"id\":\"c\",\"cmd\":\"echo 3\"}\n";
        $this->spindle(['--jsonl', '--joblog', 'log'], $input);

        $process = $this->spindle(
            ['--jsonl', '--joblog', 'log', '--resume'],
            "{$input}{\"id\":\"d\",\"cmd\":\"echo 4\"}\n",
        );

        self::assertOutcome(
            1,
            "{\"id\":\"d\",\"status\":0,\"stdout\":\"4\\n\",\"stderr\":\"\"}\n",
            $process,
            "spindle: input line 2: not JSON: Syntax error\n",
        );
    }
}
