<?php

declare(strict_types=1);

namespace Spindle\Tests\Conformance\Http\Anywhere;

use PHPUnit\Framework\Attributes\TestWith;

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
    #[TestWith(['/exhausts'])]
    public function testAHandlerThatEndsTheScriptIsAnsweredWith500(string $target): void
    {
        $fields = ['Content-Type' => 'text/plain; charset=utf-8', 'Content-Length' => '22'];
        foreach (['GET' => "Internal Server Error\n", 'HEAD' => ''] as $method => $body) {
            self::assertAnswer('500 Internal Server Error', $body, $fields, $this->ask($method, $target));
        }
    }
}
