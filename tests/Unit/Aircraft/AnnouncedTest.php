<?php

declare(strict_types=1);

namespace Spindle\Tests\Unit\Aircraft;

use Aircraft\Announced;
use Aircraft\Change;
use PHPUnit\Framework\Attributes\TestWith;
use PHPUnit\Framework\TestCase;

final class AnnouncedTest extends TestCase
{
    public function testWhatIsToldIsUnderstood(): void
    {
        $some = [
            new Announced(Change::Added, 'D-AIMA'),
            new Announced(Change::Updated, 'D-AIMA'),
            new Announced(Change::Deleted, '7'),
        ];

        self::assertSame('[["added","D-AIMA"],["updated","D-AIMA"],["deleted","7"]]', Announced::payload($some));
        self::assertEquals($some, Announced::all(Announced::payload($some)));
    }

    #[TestWith([''])]
    #[TestWith(['{'])]
    #[TestWith(['7'])]
    #[TestWith(['["added"]'])]
    #[TestWith(['[["painted","D-AIMA"]]'])]
    #[TestWith(['[["added",7]]'])]
    #[TestWith(['[[]]'])]
    public function testWhatIsNotUnderstoodIsNull(string $payload): void
    {
        self::assertSame([null], Announced::all($payload));
    }

    public function testWhatIsUnderstoodIsNotLostBesideWhatIsNot(): void
    {
        self::assertEquals(
            [null, new Announced(Change::Added, '7')],
            Announced::all('{"x":null,"y":["added","7","more"]}'),
        );
    }

    public function testAsManyAsAreToldTogetherFitIntoANotification(): void
    {
        $together = (new \ReflectionClassConstant(\Aircraft\PostgresAnnouncements::class, 'TOGETHER'))->getValue();
        self::assertIsInt($together);

        self::assertLessThan(
            8_000,
            \strlen(Announced::payload(array_fill(0, $together, new Announced(Change::Updated, 'ABCDEFGHIJKLMNOP')))),
        );
    }
}
