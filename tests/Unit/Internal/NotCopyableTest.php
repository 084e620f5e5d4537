<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Internal;

use PHPUnit\Framework\TestCase;
use Spindle\Http\Client\CookieJar;
use Spindle\Http\Client\HttpClient;
use Spindle\Http\Client\HttpClientOptions;

final class NotCopyableTest extends TestCase
{
    public function testAnObjectThatOwnsConnectionsIsNotSerialized(): void
    {
        $client = new HttpClient(new HttpClientOptions(cookies: new CookieJar()));
        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage(
            HttpClient::class . ' can not be serialized, because it belongs to this process. Create another one where',
        );
        serialize($client);
    }

    public function testAnObjectThatOwnsConnectionsIsNotUnserialized(): void
    {
        $this->expectException(\LogicException::class);
        $this->expectExceptionMessage(HttpClient::class . ' can not be unserialized');
        unserialize(\sprintf('O:%d:"%s":0:{}', \strlen(HttpClient::class), HttpClient::class));
    }
}
