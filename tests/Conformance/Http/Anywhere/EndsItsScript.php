<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Attributes\TestWith;
use Spindle\Tests\Eventually;

/** Tests of handlers that end the script or print. In the process of the tests, they would end or disturb the tests. */
trait EndsItsScript
{
    public function testAFailureIsNotAnsweredAfterOutputOfTheHandler(): void
    {
        $answer = $this->ask('GET', '/body-prints');

        self::assertSame([200, 'printed'], [$answer->getStatusCode(), (string) $answer->getBody()]);
    }

    #[TestWith(['/locks-a-buffer'])]
    #[TestWith(['/locks-a-buffer?stream'])]
    public function testABufferThatCanNotBeRemovedIsAFailureOfTheHandler(string $target): void
    {
        $answer = $this->ask('GET', $target);

        self::assertSame([500, ''], [$answer->getStatusCode(), (string) $answer->getBody()]);
        self::assertSame(200, $this->ask('GET', '/text')->getStatusCode());
    }

    #[TestWith(['/exits'])]
    #[TestWith(['/exits?app-registers-exit'])]
    #[TestWith(['/exits?app-registers-output'])]
    #[TestWith(['/exits?front-registers-exit'])]
    #[TestWith(['/exhausts'])]
    #[TestWith(['/exhausts?app-registers-exit'])]
    #[TestWith(['/exhausts?front-registers-exit'])]
    public function testAHandlerThatEndsTheScriptIsAnsweredWith500(string $target): void
    {
        $fields = ['Content-Type' => 'text/plain; charset=utf-8', 'Content-Length' => '22'];
        foreach (['GET' => "Internal Server Error\n", 'HEAD' => ''] as $method => $body) {
            self::assertAnswer('500 Internal Server Error', $body, $fields, $this->ask($method, $target));
        }
    }

    public function testBackgroundWorkDoesNotChangeTheResponse(): void
    {
        $file = sys_get_temp_dir() . '/spindle-background-' . bin2hex(random_bytes(8));
        self::assertSame('one,two', (string) $this->ask('GET', "/background-fails?{$file}")->getBody());

        Eventually::holds(static fn(): bool => file_exists($file), 'the other work is done');
        unlink($file);
    }

    #[TestWith(['handler', 500, "Internal Server Error\n"])]
    #[TestWith(['garbage', 500, "Internal Server Error\n"])]
    #[TestWith(['fiber', 500, "Internal Server Error\n"])]
    #[TestWith(['buffer', 500, ''])]
    #[TestWith(['output', 200, 'printed'])]
    #[TestWith(['work', 200, 'answered'])]
    #[TestWith(['works', 200, 'answered'])]
    #[TestWith(['shutdown', 500, "Internal Server Error\n"])]
    #[TestWith(['globals', 200, 'answered'])]
    public function testBackgroundWorkIsDoneAfterAnEarlyEndOfTheScript(string $end, int $status, string $body): void
    {
        $file = sys_get_temp_dir() . '/spindle-background-' . bin2hex(random_bytes(8));
        $answer = $this->ask('GET', "/background-ends?{$end}&{$file}");

        self::assertSame([$status, $body], [$answer->getStatusCode(), (string) $answer->getBody()]);
        Eventually::holds(static fn(): bool => file_exists($file), 'the work is done');
        unlink($file);
    }

    public function testAScriptEndsThoughItsBackgroundWorkAwaitsAFiberThatHasCalledExit(): void
    {
        $file = sys_get_temp_dir() . '/spindle-background-' . bin2hex(random_bytes(8));
        self::assertSame('answered', (string) $this->ask('GET', "/background-ends?awaited&{$file}")->getBody());

        self::assertSame(200, $this->ask('GET', '/text')->getStatusCode());
        self::assertFileExists($file);
        unlink($file);
    }

    public function testBackgroundWorkIsDoneAfterABodyThatEndsTheScript(): void
    {
        $file = sys_get_temp_dir() . '/spindle-background-' . bin2hex(random_bytes(8));
        try {
            $this->ask('GET', "/background-ends?body&{$file}");
        } catch (\UnexpectedValueException) {
        }
        Eventually::holds(static fn(): bool => file_exists($file), 'the work is done');
        unlink($file);
    }

    public function testBackgroundWorkIsDoneAfterAnIncompleteResponse(): void
    {
        $file = sys_get_temp_dir() . '/spindle-background-' . bin2hex(random_bytes(8));
        try {
            $this->ask('GET', "/background-short?{$file}");
            self::fail('The response is complete');
        } catch (\UnexpectedValueException) {
        }
        Eventually::holds(static fn(): bool => file_exists($file), 'the work is done');
        unlink($file);
    }
}
